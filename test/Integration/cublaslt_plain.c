/* cublaslt_plain.c - a libcublasLt.so whose products are plain loops.
 *
 * For the test of tools/bench/cublaslt.py on the emulated driver: the calls
 * that the script makes, with the meaning that cuBLASLt's documentation gives
 * them. Matrices are column-major; y = op(A) op(B) in f32. Refuses what it does
 * not know, so that a wrong attribute or type is found. Its one algorithm says
 * so in its first word.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { OK = 0, INVALID = 7, UNSUPPORTED = 15 };
enum { R_32F = 0, R_16F = 2, R_16BF = 14 };
static const uint64_t mine = 0x706c61696eu;

struct desc {
  int compute, scale;
  int32_t transA;
};
struct layout {
  int type;
  uint64_t rows, columns;
  int64_t pitch;
};
struct heuristic {
  uint64_t algorithm[8];
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
};

int cublasLtCreate(void **handle) { return (*handle = malloc(1)) ? OK : 1; }
const char *cublasLtGetStatusString(int status) {
  return status == INVALID ? "an invalid value was given" : "not supported";
}

int cublasLtMatmulDescCreate(struct desc **desc, int compute, int scale) {
  if ((compute != 68 && compute != 77) || scale != R_32F)
    return UNSUPPORTED;
  *desc = calloc(1, sizeof(**desc));
  (*desc)->compute = compute;
  return OK;
}
int cublasLtMatmulDescSetAttribute(struct desc *desc, int attribute,
                                   const void *value, size_t bytes) {
  if (attribute != 3 || bytes != 4)
    return INVALID;
  memcpy(&desc->transA, value, 4);
  return desc->transA == 0 || desc->transA == 1 ? OK : INVALID;
}
int cublasLtMatrixLayoutCreate(struct layout **layout, int type, uint64_t rows,
                               uint64_t columns, int64_t pitch) {
  if ((type != R_32F && type != R_16F && type != R_16BF) ||
      pitch < (int64_t)rows)
    return INVALID;
  *layout = malloc(sizeof(**layout));
  **layout = (struct layout){type, rows, columns, pitch};
  return OK;
}
int cublasLtMatmulPreferenceCreate(size_t **preference) {
  *preference = calloc(1, sizeof(**preference));
  return OK;
}
int cublasLtMatmulPreferenceSetAttribute(size_t *preference, int attribute,
                                         const void *value, size_t bytes) {
  if (attribute != 1 || bytes != sizeof(size_t))
    return INVALID;
  memcpy(preference, value, bytes);
  return OK;
}

static int agree(const struct desc *desc, const struct layout *a,
                 const struct layout *b, const struct layout *d) {
  uint64_t m = desc->transA ? a->columns : a->rows;
  uint64_t k = desc->transA ? a->rows : a->columns;
  return a->type == b->type && d->type == R_32F && k == b->rows &&
         d->rows == m && d->columns == b->columns &&
         (desc->compute == 68 || a->type == R_32F);
}

int cublasLtMatmulAlgoGetHeuristic(void *handle, const struct desc *desc,
                                   const struct layout *a,
                                   const struct layout *b,
                                   const struct layout *c,
                                   const struct layout *d,
                                   const size_t *preference, int wanted,
                                   struct heuristic *results, int *count) {
  *count = 0;
  if (!handle || c->rows != d->rows || !agree(desc, a, b, d))
    return INVALID;
  if (!*preference || wanted < 1)
    return INVALID;
  memset(results, 0, sizeof(*results));
  results->algorithm[0] = mine;
  *count = 1;
  return OK;
}

static void *driver(const char *name) {
  static void *library;
  if (!library)
    library = dlopen("libcuda.so.1", RTLD_NOW);
  return dlsym(library, name);
}
/* A matrix of the GPU's as f32 numbers. */
static float *fetch(const struct layout *l, uint64_t from) {
  int (*copy)(void *, uint64_t, size_t) =
      (int (*)(void *, uint64_t, size_t))driver("cuMemcpyDtoH_v2");
  size_t count = (size_t)l->pitch * l->columns, size = l->type ? 2 : 4;
  char *bytes = malloc(count * size);
  float *values = malloc(count * sizeof(float));
  if (copy(bytes, from, count * size)) {
    free(bytes);
    free(values);
    return 0;
  }
  for (size_t i = 0; i < count; ++i)
    if (l->type == R_32F) {
      memcpy(values + i, bytes + 4 * i, 4);
    } else if (l->type == R_16F) {
      _Float16 half;
      memcpy(&half, bytes + 2 * i, 2);
      values[i] = (float)half;
    } else {
      uint32_t word = 0;
      memcpy((char *)&word + 2, bytes + 2 * i, 2);
      memcpy(values + i, &word, 4);
    }
  free(bytes);
  return values;
}

int cublasLtMatmul(void *handle, const struct desc *desc, const float *alpha,
                   uint64_t a, const struct layout *al, uint64_t b,
                   const struct layout *bl, const float *beta, uint64_t c,
                   const struct layout *cl, uint64_t d,
                   const struct layout *dl, const uint64_t *algorithm,
                   uint64_t workspace, size_t workspaceBytes, void *stream) {
  if (!handle || *alpha != 1 || *beta != 0 || c != d || cl != dl ||
      *algorithm != mine || !workspace || !workspaceBytes || !stream ||
      !agree(desc, al, bl, dl))
    return INVALID;
  float *left = fetch(al, a), *right = fetch(bl, b);
  float *out = calloc((size_t)dl->pitch * dl->columns, sizeof(float));
  int result = left && right ? OK : INVALID;
  for (uint64_t j = 0; result == OK && j < dl->columns; ++j)
    for (uint64_t i = 0; i < dl->rows; ++i)
      for (uint64_t k = 0; k < bl->rows; ++k)
        out[j * dl->pitch + i] +=
            (desc->transA ? left[i * al->pitch + k] : left[k * al->pitch + i]) *
            right[j * bl->pitch + k];
  int (*copy)(uint64_t, const void *, size_t) =
      (int (*)(uint64_t, const void *, size_t))driver("cuMemcpyHtoD_v2");
  if (result == OK && copy(d, out, (size_t)dl->pitch * dl->columns * 4))
    result = INVALID;
  free(left);
  free(right);
  free(out);
  return result;
}
