/* Program.h - what the compiler tells the embedded runtime.
 *
 * The compiler emits these structs as constants of the model's object
 * (Package/ProgramData.cpp); Runtime/Core only reads them. C layout,
 * little-endian, 64-bit. Nothing here allocates.
 */
#ifndef GPTC_FORMAT_PROGRAM_H
#define GPTC_FORMAT_PROGRAM_H
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Every generated kernel has this signature. args: pointers as in gptc_call;
 * dims: the call's dynamic sizes; scratch: scratch_bytes of this thread's own
 * memory, 64-byte aligned; the work is cut over thread in [0, threads). Any cut
 * gives the same bits. */
typedef void (*gptc_kernel_fn)(void *const *args, const int64_t *dims,
                               void *scratch, int64_t thread, int64_t threads);

/* Consecutive tokens of one sequence in a ragged batch. */
typedef struct gptc_run_desc {
  int32_t first, count, sequence, position;
} gptc_run_desc;

/* How a GPU runs a call: an extent is ceil(mul * the product of the kernel's
 * dimensions dims[i], -1: none, / div), at least 1. */
typedef struct gptc_extent {
  int64_t mul, div;
  int8_t dims[8];
} gptc_extent;

/* One launch of a function of the device code. Its parameters are the call's
 * arguments (pointers of device memory), then a pointer to scratch memory if
 * the call has scratch_bytes, then the call's dimensions as int64. */
typedef struct gptc_launch {
  int32_t function; /* of gptc_device_code::functions */
  int32_t threads;  /* of a block */
  int64_t shared_bytes;
  gptc_extent grid[3];
} gptc_launch;

/* Launches in order, for calls whose first dimension is at most most_rows. */
typedef struct gptc_variant {
  int64_t most_rows;
  const gptc_launch *launches;
  int64_t launch_count;
} gptc_variant;

/* What a kernel sees of the KV cache, for one layer l: pool points at layer l
 * of page 0 (the runtime adds l * heads * block_bytes, so that one kernel
 * serves every layer). Block of page p, head h: pool + ((int64)p * layers *
 * heads + h) * block_bytes; it holds keys [D][page] (transposed: scores are
 * vectorised along keys), then values [page][Dv], Dv = gptc_kv_value_pitch(D),
 * all of gptc_kv_desc::element. */
typedef struct gptc_kv_view {
  char *pool;
  const int32_t *pages; /* [sequences][max_pages] page numbers */
  int64_t max_pages;
  const gptc_run_desc *runs;
  int64_t run_count;
  /* Memory for parts of attention that threads put together, of partial_bytes
   * bytes, which may be 0: GPTC_KV_COUNTERS int32 that are 0 between kernels,
   * then whatever kernels make of it. */
  char *partials;
  int64_t partial_bytes;
} gptc_kv_view;
enum { GPTC_KV_COUNTERS = 1024 };

/* A size: bytes times the product of up to three dynamic dimensions (index into
 * the entry's dims, -1: none). */
typedef struct gptc_size {
  int64_t bytes;
  int8_t dims[4];
  int32_t slot; /* buffers: the workspace slot that it lies in */
} gptc_size;

enum {
  GPTC_ARG_INPUT = 0,
  GPTC_ARG_OUTPUT = 1,
  GPTC_ARG_BUFFER = 2,
  GPTC_ARG_WEIGHT = 3,
  GPTC_ARG_CACHE = 4
};
typedef struct gptc_arg {
  int32_t kind;
  /* of the entry's input, output or buffer; of the program's weight; for the
   * cache: the layer of its view */
  int32_t index;
} gptc_arg;

typedef struct gptc_call_desc {
  gptc_kernel_fn fn;
  const char *name;
  const gptc_arg *args;
  int32_t arg_count;
  int32_t dim_count;
  /* kernel dimension i is the entry's dynamic dimension dims[i] */
  int8_t dims[8];
  int64_t scratch_bytes; /* per thread */
  /* if >= 0: scratch_bytes is multiplied by this entry dimension's size */
  int8_t scratch_dim;
  int8_t pad[3];
  /* Of a package for a GPU, whose fn is null: the first variant that fits runs,
   * the last one fits all; scratch_bytes are those of the whole call. */
  int32_t variant_count;
  const gptc_variant *variants;
} gptc_call_desc;

/* A named tensor of an entry. shape[i] < 0: dynamic dimension -1 - shape[i].
 * i32 inputs of rank < 8: shape[7], if not 0, is a size like the others that
 * bounds their values, which run checks to lie in [0, it): the rows of a tensor
 * that they index. */
typedef struct gptc_value_desc {
  const char *name;
  int32_t dtype; /* gptc_dtype: f32 or i32 */
  int32_t rank;
  int64_t shape[8];
} gptc_value_desc;

/* How an entry runs. GPTC_ENTRY_PLAIN: named tensors (run). GPTC_ENTRY_STEP:
 * inputs tokens, positions, sequences, rows; dims T (tokens), R (rows); output
 * logits. GPTC_ENTRY_STEP_SINGLE: the same, one sequence at a time, with a
 * third dim S = keys (position of the last token + 1). */
enum { GPTC_ENTRY_PLAIN = 0, GPTC_ENTRY_STEP = 1, GPTC_ENTRY_STEP_SINGLE = 2 };
typedef struct gptc_entry_desc {
  const char *name;
  int32_t kind;
  int32_t dim_count;
  /* indices of T, R, S for step entries, else -1 */
  int32_t dim_tokens, dim_rows, dim_keys;
  int32_t input_count, output_count, buffer_count, slot_count, call_count;
  const gptc_value_desc *inputs;
  const gptc_value_desc *outputs;
  const gptc_size *buffers;
  const gptc_call_desc *calls;
  /* [dim_count] or null: sizes as in gptc_value_desc that run checks dynamic
   * dimensions not to exceed (rows of a table that positions index); 0: none */
  const int64_t *dim_limits;
} gptc_entry_desc;

/* Element formats of packed weights beside gptc_dtype. */
enum {
  GPTC_PACKED_BF16X2 = 7,
  GPTC_PACKED_I8X4 = 8,
  GPTC_PACKED_Q8_0X4 = 9
};
/* How a weight is packed; see WeightLayout.h. */
enum { GPTC_LAYOUT_VECTOR = 0, GPTC_LAYOUT_PANEL = 1 };
typedef struct gptc_weight_desc {
  const char *name; /* of the source tensor */
  /* gptc_dtype as stored in the checkpoint and as the host must give it */
  int32_t source_dtype;
  int32_t packed_dtype; /* element format in the packed form: gptc_dtype or GPTC_PACKED_* */
  int32_t layout;
  int32_t in_out; /* source is [K, N] rather than [N, K] */
  /* of the whole source tensor; a vector has one row */
  int64_t source_rows, source_cols;
  /* n output features of the source from n0 on are packed: [n0, n0 + n) if
   * take is 0 (a section of a packed projection), else the first `take` of
   * every `of` (a section of one that is packed head by head) */
  int64_t n0, n, take, of;
  int64_t k;     /* input features; 1 for vectors */
  int64_t panel; /* NR: output features in a panel */
  /* bytes from the start of the program's section of the weights file, a
   * multiple of 64 */
  uint64_t offset;
  uint64_t bytes;
  /* vectors: added to each value, rounded to f32 once; not if it is 0 */
  double shift;
} gptc_weight_desc;

typedef struct gptc_kv_desc {
  /* block_bytes: keys and values of one page, layer and head; element:
   * gptc_dtype f32, bf16 or f16; partial_bytes: of gptc_kv_view's partials for
   * each page of a session of several threads, beside the counters */
  int64_t layers, heads, head_dim, page, block_bytes, element, partial_bytes;
} gptc_kv_desc;

/* Row pitch of cached values in elements, and bytes of a block. */
static inline int64_t gptc_kv_value_pitch(int64_t head_dim) {
  return (head_dim + 15) / 16 * 16;
}
static inline int64_t gptc_kv_block_bytes(int64_t head_dim, int64_t page,
                                          int64_t element_bytes) {
  return (head_dim + gptc_kv_value_pitch(head_dim)) * page * element_bytes;
}

/* Code for a GPU: an image for cuModuleLoadData (a fatbin). */
typedef struct gptc_device_code {
  const void *image;
  const char *const *functions;
  int64_t function_count;
  /* the least compute capability that runs it, 80 for 8.0 */
  int64_t compute_capability;
} gptc_device_code;

typedef struct gptc_program {
  uint64_t size; /* sizeof(gptc_program) */
  const struct gptc_info *info;
  uint64_t package_hash; /* binds the weights file */
  int32_t entry_count, weight_count;
  const gptc_entry_desc *entries;
  const gptc_weight_desc *weights;
  /* the program's section of the weights file, where its weights' offsets
   * start; its first 64 bytes are the file's header or unused */
  uint64_t weights_begin, weights_section_bytes;
  uint64_t weights_file_bytes;
  gptc_kv_desc kv;
  /* comma-separated names that the CPU must have, e.g. "avx512f,avx512bw" */
  const char *cpu_features;
  /* null: calls run on the CPU */
  const gptc_device_code *device;
} gptc_program;

/* What a package consists of: one program for each level of CPUs that it was
 * compiled for, the highest first. All have the same entries; kernels and
 * packed weights are each program's own. */
typedef struct gptc_programs {
  int64_t count;
  const gptc_program *const *programs;
} gptc_programs;

/* Head of a weights file, 64 bytes, then packed weights at their offsets. The
 * section of every program but the first starts at a multiple of 4096. */
#define GPTC_WEIGHTS_MAGIC "GPTCWT01"
typedef struct gptc_weights_header {
  char magic[8];
  uint64_t package_hash;
  uint64_t file_bytes;
  uint64_t checksum; /* of all bytes after the header: WeightLayout.h */
  uint64_t reserved[4];
} gptc_weights_header;

#ifdef __cplusplus
}
#endif
#endif
