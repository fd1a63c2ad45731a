/* gptc.h - the C ABI of a compiled package: shared types (version 1).
 *
 * A package named NAME exports only NAME_* (see NAME.h, which repeats these
 * types under the same guard, so that it stands alone and several packages can
 * be included in one program). All functions return a status; none aborts,
 * throws or prints.
 *
 * Tensors are dense, row-major, innermost dimension last. f32 is IEEE binary32.
 * Sizes are in elements unless a name says bytes. Pointers passed in are only
 * read, and only during the call, unless a comment says otherwise.
 * Thread-safety: a model may be used from many threads; a session from one
 * thread at a time. The caller's floating-point mode (MXCSR) and locale change
 * no result; every function leaves them, signal handlers and the environment
 * alone.
 */
#ifndef GPTC_ABI_1
#define GPTC_ABI_1
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gptc_status {
  GPTC_OK = 0,
  /* a null pointer, a wrong shape, an unknown name */
  GPTC_INVALID_ARGUMENT = 1,
  /* token id, position, sequence or row outside its range */
  GPTC_OUT_OF_RANGE = 2,
  /* more tokens, sequences, pages or rows than the session's limits */
  GPTC_LIMIT = 3,
  /* weights file missing, truncated, corrupt or of another package */
  GPTC_BAD_WEIGHTS = 4,
  GPTC_NO_MEMORY = 5,
  GPTC_UNSUPPORTED_CPU = 6, /* the message names the missing feature */
  GPTC_BUSY = 7,            /* the session is in use by another thread */
  /* no driver, no GPU, or one that the package's code does not run on */
  GPTC_NO_DEVICE = 8,
  /* the GPU's driver reported an error, which the message names; sessions of
   * the model may be closed, nothing else */
  GPTC_DEVICE_ERROR = 9
} gptc_status;

typedef enum gptc_dtype {
  GPTC_F32 = 0,
  GPTC_F16 = 1,
  GPTC_BF16 = 2,
  GPTC_Q8_0 = 3,
  GPTC_Q4_0 = 4,
  GPTC_Q4_1 = 5,
  GPTC_I32 = 6
} gptc_dtype;

typedef struct gptc_model gptc_model;
typedef struct gptc_session gptc_session;

/* A tensor by name. shape[rank]; data is dense in dtype (quantised: rows of
 * ggml blocks). For outputs of run: data may be null on entry to ask for the
 * shape only; capacity_bytes is the room at data. */
typedef struct gptc_tensor {
  const char *name;
  gptc_dtype dtype;
  int32_t rank;
  int64_t shape[8];
  void *data;
  size_t capacity_bytes;
} gptc_tensor;

/* What a package is. Static storage; valid while it is loaded. */
typedef struct gptc_info {
  size_t size; /* sizeof(gptc_info) of the package */
  const char *name;
  /* e.g. "x86-64-v4"; of several levels, the one that this CPU runs */
  const char *target;
  const char *precision; /* "f32" */
  /* most positions of one sequence; 0 if the package has no step entry */
  int64_t context;
  int64_t vocab;         /* logits per row; 0 likewise */
  int64_t page;          /* positions in a KV page */
  int64_t kv_page_bytes; /* bytes of one page over all layers */
  int64_t weights_bytes; /* bytes of packed weights */
  int64_t eos;           /* end-of-text token id or -1 */
  int64_t bos;           /* or -1 */
  int32_t optimization;  /* 0 or 2 */
} gptc_info;

/* A host's memory and threads; null members: the package's own (malloc, its own
 * pool). parallel runs body(data, i) for i in [0, n), in any order, on any
 * threads, and returns when all are done. */
typedef struct gptc_host {
  size_t size; /* sizeof(gptc_host) */
  void *user;
  void *(*allocate)(void *user, size_t bytes, size_t alignment);
  void (*release)(void *user, void *pointer, size_t bytes);
  void (*parallel)(void *user, int32_t n, void (*body)(void *data, int32_t i),
                   void *data);
  /* Packages for a GPU: the CUstream of the host that steps run on, in the
   * context that is current at open; null: streams of the package's own. */
  void *stream;
} gptc_host;

/* Where the weights come from: a packed weights file (mapped, never copied), or
 * the host's own tensors, named and shaped as in the manifest and packed at
 * open into memory of the model. Exactly one of the two. */
typedef struct gptc_open_params {
  size_t size;
  const char *weights_path;
  const gptc_tensor *weights;
  size_t weight_count;
  const gptc_host *host; /* or null; copied */
  /* not 0: also read all of the weights file and check its checksum; size and
   * package are always checked */
  int32_t verify;
} gptc_open_params;

/* Limits of a session; 0 means the default in brackets. Memory is allocated
 * when it is opened, none later but by run, whose tensors may have any size. */
typedef struct gptc_limits {
  size_t size;
  int64_t tokens;    /* tokens in one step [min(context, 512)] */
  int64_t sequences; /* sequences [1] */
  /* KV pages, shared by the sequences [enough for every sequence at full
   * context] */
  int64_t pages;
  int64_t rows;    /* logits rows in one step [tokens] */
  int32_t threads; /* [number of CPUs] */
} gptc_limits;

/* One step: count tokens of a ragged batch. The tokens of a sequence are
 * consecutive in the batch and have consecutive positions. Starting a sequence
 * at position p truncates it to p first (p <= its length). rows are indices
 * into the batch, ascending or not, whose logits are wanted. */
typedef struct gptc_batch {
  int64_t count;
  const int32_t *tokens;    /* [count] */
  const int32_t *positions; /* [count] */
  const int32_t *sequences; /* [count], or null: all of sequence 0 */
  int64_t row_count;
  const int32_t *rows; /* [row_count] */
} gptc_batch;

/* Called after each kernel when set with observe. args are the kernel's
 * arguments in the order of its prototype (tensors as pointers to their first
 * element), dims the sizes of its dynamic dimensions, seconds its wall time, on
 * a GPU between events of the stream before and after it. If read is not null,
 * args are in a GPU's memory: read(memory, from, to, bytes) copies from there
 * to the host's, and returns 0 if it could. */
typedef struct gptc_event {
  const char *kernel;
  const char *entry;
  int64_t call; /* index of the call in the entry */
  void *const *args;
  int32_t arg_count;
  const int64_t *dims;
  int32_t dim_count;
  double seconds;
  int (*read)(void *memory, const void *from, void *to, size_t bytes);
  void *memory;
} gptc_event;
typedef void (*gptc_observer)(void *user, const gptc_event *event);

/* The package's functions as one table (NAME_api()). */
typedef struct gptc_api {
  size_t size;
  const gptc_info *(*info)(void);
  gptc_status (*open)(const gptc_open_params *params, gptc_model **model);
  gptc_status (*session)(gptc_model *model, const gptc_limits *limits,
                         gptc_session **session);
  /* logits [row_count, vocab] f32; a package for a GPU also takes a pointer to
   * its memory, and then returns before the stream has come to it */
  gptc_status (*step)(gptc_session *session, const gptc_batch *batch,
                      float *logits);
  /* Any entry with named tensors. Outputs are matched by name. */
  gptc_status (*run)(gptc_session *session, const char *entry,
                     const gptc_tensor *inputs, size_t input_count,
                     gptc_tensor *outputs, size_t output_count);
  /* Sequence `to` becomes a copy of the first `length` positions of `from`,
   * sharing its pages. */
  gptc_status (*fork)(gptc_session *session, int32_t from, int32_t to,
                      int64_t length);
  gptc_status (*observe)(gptc_session *session, gptc_observer observer,
                         void *user);
  /* Closes a session or a model (sessions first). Null is allowed. */
  void (*close)(void *model_or_session);
  /* Message of the last call on this thread that did not return GPTC_OK; "" if
   * none. Valid until the next call. */
  const char *(*last_error)(void);
} gptc_api;

#ifdef __cplusplus
}
#endif
#endif /* GPTC_ABI_1 */
