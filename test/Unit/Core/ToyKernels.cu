//===- ToyKernels.cu - Kernels of the toy package for a GPU ---------------===//
//
// The same arithmetic as in ToyModel.cpp, in the same order, one thread a token
// or an element; a parameter for every argument, scratch memory, dimensions.
//
//===----------------------------------------------------------------------===//
#include "ToySizes.h"
#include "gptc/Format/Program.h"

using namespace toy;

__device__ float table(const float *packed, int64_t token, int64_t d) {
  return packed[(token / NR * D + d) * NR + token % NR];
}

__device__ float *key(const gptc_kv_view &view, int64_t sequence,
                      int64_t position, int64_t d) {
  int64_t p = view.pages[sequence * view.max_pages + position / page];
  char *block = view.pool + p * layers * blockBytes;
  return reinterpret_cast<float *>(block) + d * page + position % page;
}

/// The sequence of token t.
__device__ int64_t sequenceOf(const gptc_kv_view &view, int64_t t) {
  for (int64_t r = 0; r < view.run_count; ++r)
    if (t >= view.runs[r].first && t < view.runs[r].first + view.runs[r].count)
      return view.runs[r].sequence;
  return -1;
}

__device__ int64_t index() {
  return blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
}

extern "C" __global__ void toy_append(const int *tokens, const int *positions,
                                      const float *packed, const float *bias,
                                      const gptc_kv_view *first,
                                      const gptc_kv_view *second, long long T) {
  int64_t t = index();
  if (t >= T)
    return;
  const gptc_kv_view *views[] = {first, second};
  for (int64_t l = 0; l < layers; ++l)
    for (int64_t d = 0; d < D; ++d)
      *key(*views[l], sequenceOf(*first, t), positions[t], d) =
          float(l + 1) *
          (table(packed, tokens[t], d) + bias[d] * float(positions[t]));
}

#ifdef TOY_SINGLE
extern "C" __global__ void toy_attend(const int *positions,
                                      const gptc_kv_view *first,
                                      const gptc_kv_view *second, float *h,
                                      float *scores, float *scratch,
                                      long long T, long long S) {
#else
extern "C" __global__ void toy_attend(const int *positions,
                                      const gptc_kv_view *first,
                                      const gptc_kv_view *second, float *h,
                                      float *scores, float *scratch,
                                      long long T) {
#endif
  int64_t t = index();
  if (t >= T)
    return;
  const gptc_kv_view *views[] = {first, second};
  float *sum = scratch + t * D;
  for (int64_t d = 0; d < D; ++d)
    sum[d] = 0;
  for (int64_t j = 0; j <= positions[t]; ++j)
    for (int64_t l = 0; l < layers; ++l)
      for (int64_t d = 0; d < D; ++d)
        sum[d] +=
            float(j + 1) * *key(*views[l], sequenceOf(*first, t), j, d);
  for (int64_t d = 0; d < D; ++d)
    h[t * D + d] = sum[d];
#ifdef TOY_SINGLE
  for (int64_t s = 0; s < S; ++s)
    scores[t * S + s] = 1;
#endif
}

extern "C" __global__ void toy_head(const float *h, const int *rows,
                                    const float *packed, float *logits,
                                    long long R) {
  int64_t i = index();
  if (i >= R * V)
    return;
  float sum = 0;
  for (int64_t d = 0; d < D; ++d)
    sum += table(packed, i % V, d) * h[rows[i / V] * D + d];
  logits[i] = sum;
}

extern "C" __global__ void toy_gather(const float *x, const int *ids,
                                      const float *packed, float *y,
                                      float *scratch, long long n) {
  int64_t i = index();
  if (i >= n * D)
    return;
  scratch[i] = table(packed, ids[i / D], i % D);
  y[i] = x[i] + scratch[i];
}
