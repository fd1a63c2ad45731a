//===- Core.h - The runtime embedded in every package ---------------------===//
//
// What the functions of gptc.h do, driven by the tables of Program.h. The
// sources of this folder become assembly at build time; the compiler adds it to
// a model's kernels and program and renames gptc_core_* to NAME_*; nothing else
// is visible. So: a C++ subset that needs only libc with threads.
// No libstdc++, libm, exceptions, RTTI or static constructors; no output, no
// environment, no global mutable state but the thread's error message and the
// choice of a program, which is made once and always the same.
//
// Refuses, with a status and a message and without a change of state, whatever
// a caller may get wrong. Trusts the compiler's tables.
//
// T tokens of a batch, R logits rows, S keys of a sequence.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_RUNTIME_CORE_CORE_H
#define GPTC_RUNTIME_CORE_CORE_H

#include "gptc/Format/Program.h"
#include "gptc/Runtime/gptc.h"

/// Defined by the compiler (or by a test).
extern "C" {
extern const gptc_programs gptc_the_programs
    __attribute__((visibility("hidden")));
}

namespace gptc::core {

struct Pool;
struct Device;    ///< Device.h
struct StepGraph; ///< DeviceGraph.h

/// Keeps the message for gptc_core_last_error and returns `status`.
gptc_status fail(gptc_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const char *lastError();

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Vectors are aligned to this and may be read this far past their end.
constexpr uint64_t vectorBytes = 64;

struct Block {
  void *pointer;
  uint64_t bytes;
};

/// 64-byte aligned and readable for `vectorBytes` past the end. Zeroed if
/// asked for. Large blocks of the package's own allocator are committed as
/// they are touched. False, with the message set, if there is no memory.
bool allocate(const gptc_host &host, uint64_t bytes, bool zeroed, Block &block);
void release(const gptc_host &host, Block &block);

/// a * b and a + b that stay at UINT64_MAX when they overflow, which no
/// allocation satisfies.
inline uint64_t saturatingMul(uint64_t a, uint64_t b) {
  uint64_t product;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}
inline uint64_t saturatingAdd(uint64_t a, uint64_t b) {
  uint64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}
/// `bytes` rounded up to vectors, and one vector more to over-read.
inline uint64_t padded(uint64_t bytes) {
  uint64_t sum = saturatingAdd(bytes, 2 * vectorBytes - 1);
  return sum == UINT64_MAX ? sum : sum / vectorBytes * vectorBytes;
}

//===----------------------------------------------------------------------===//
// Model
//===----------------------------------------------------------------------===//

/// First member of models and sessions, so that close can tell them apart.
enum class Kind : uint64_t { Model = 0x6c65646f6d, Session = 0x6e6f6973736573 };

struct Model {
  Kind kind;
  gptc_host host;
  const gptc_program *chosen; ///< read by programOf
  /// The program's section of the weights file, in `mapped` or packed in
  /// `weights`.
  const char *image;
  Block self, weights;
  Device *device;      ///< null: the kernels run on the CPU
  Block deviceWeights; ///< `image` then
  void *mapped;        ///< the whole file, or null
  uint64_t mappedBytes;
  /// The model itself and one for each of its sessions.
  int32_t references;
};

gptc_status openModel(const gptc_open_params *params, Model **model);
gptc_status mapWeights(const char *path, bool verify, Model &model);
gptc_status packWeights(const gptc_tensor *tensors, size_t count, Model &model);
void dropModel(Model *model);

/// The package's first program that this CPU can run; the last one if there is
/// none.
const gptc_program &chosenProgram();
inline const gptc_program &programOf(const Model &model) {
  return *model.chosen;
}
/// Status GPTC_UNSUPPORTED_CPU if the CPU lacks something that it needs.
gptc_status checkCpu(const gptc_program &program);
/// CPUs that this thread may run on, at least 1.
int32_t cpuCount();

//===----------------------------------------------------------------------===//
// A GPU (Device.h)
//===----------------------------------------------------------------------===//

/// The work of one session on a GPU, in order.
struct Queue {
  const Device *device; ///< null: the kernels run on the CPU
  void *stream;
  bool owned; ///< the stream is not the host's
  /// Recorded behind the copy of the session's tables, and around a call that
  /// is timed.
  enum { tablesRead, before, after, eventCount };
  void *events[eventCount];
  /// The first error of the driver, 0 for none, and what failed.
  int32_t error;
  const char *failed;
};

/// Memory that kernels read and write: the GPU's, or the host's.
bool allocateForKernels(const gptc_host &host, Queue &queue, uint64_t bytes,
                        bool zeroed, Block &block);
void releaseForKernels(const gptc_host &host, const Queue &queue, Block &block);

//===----------------------------------------------------------------------===//
// KV cache
//===----------------------------------------------------------------------===//

/// Pages, counted from position 0 of each sequence and shared by forks. A page
/// with one owner may be written; a shared one is copied first.
struct Cache {
  char *pool;
  uint64_t pageBytes;
  int64_t page;     ///< positions in a page
  int64_t pages;    ///< in the pool
  int64_t maxPages; ///< of one sequence
  int64_t sequences;
  int32_t *table;  ///< [sequences][maxPages]
  int32_t *owners; ///< [pages]; 0: free
  int32_t *free;   ///< [pages], a stack
  int64_t freeCount;
  int64_t clean;    ///< pages >= clean have never been written
  int64_t *lengths; ///< [sequences]
  int64_t *stamps;  ///< [sequences]; number of the last batch that named it
  uint8_t *copies;  ///< [sequences]; its last kept page must be copied
  int64_t batch;
  Queue *queue; ///< of the session
};

void resetCache(Cache &cache);
/// Makes room for the runs: truncates, copies shared pages, adds pages, sets
/// the lengths. All of it or, with GPTC_LIMIT, nothing.
gptc_status prepareRuns(Cache &cache, const gptc_run_desc *runs, int64_t count);
gptc_status forkSequence(Cache &cache, int32_t from, int32_t to,
                         int64_t length);

//===----------------------------------------------------------------------===//
// Session
//===----------------------------------------------------------------------===//

constexpr int32_t maxDims = 16, maxCallDims = 8;
constexpr int32_t maxStepInputs = 4;

/// Where an entry's buffers lie.
struct Workspace {
  Block memory;
  uint64_t *slots; ///< [slot_count] byte offsets into memory
  Block slotMemory;
};

struct Session {
  Kind kind;
  Model *model;
  int32_t busy;
  gptc_limits limits; ///< all resolved
  Pool *pool;         ///< null: one thread, or the host's threads
  const gptc_entry_desc *step;
  Cache cache;
  Queue queue;
  /// Copies of a batch, readable past their ends: [tokens], [rows].
  int32_t *tokens, *positions, *sequences, *rows;
  /// Which of the four each input of the step entry is.
  int32_t **stepInputs[maxStepInputs];
  gptc_run_desc *runs;          ///< [min(tokens, sequences)]
  gptc_run_desc *single;        ///< the run of a GPTC_ENTRY_STEP_SINGLE
  int32_t *runRows, *rowPlaces; ///< [rows], GPTC_ENTRY_STEP_SINGLE only
  float *logits;                ///< [rows][vocab], likewise, or on a GPU
  void **args;                  ///< of one call
  void **params;                ///< of one launch: pointers to what it takes
  gptc_kv_view *views;          ///< [layers]
  char *partials;               ///< gptc_kv_view's
  Workspace stepSpace, runSpace;
  Block scratch;
  uint64_t scratchStride; ///< bytes per thread
  gptc_observer observer;
  void *observerUser;
  Block self, tables, cachePool, logitsMemory;
  /// A GPU's copy of the first `mirroredBytes` of tables: what kernels read.
  Block mirror;
  uint64_t mirroredBytes;
  Block pointers, values; ///< of the tensors of runEntry, and these
  StepGraph *graphs;      ///< of a GPU (DeviceGraph.h)
  int32_t graphCount;
  Block graphMemory;
};

/// Where kernels find what lies at `table` in the first tables of a session.
template <typename T> T *forKernels(const Session &session, T *table) {
  if (!session.mirror.pointer)
    return table;
  return reinterpret_cast<T *>(
      static_cast<char *>(session.mirror.pointer) +
      (reinterpret_cast<const char *>(table) -
       static_cast<const char *>(session.tables.pointer)));
}

gptc_status openSession(Model *model, const gptc_limits *limits,
                        Session **session);
void dropSession(Session *session);
/// Makes the graphs of the step entry, on a GPU.
gptc_status prepareGraphs(Session &session);
gptc_status step(Session &session, const gptc_batch &batch, float *logits);
gptc_status runEntry(Session &session, const char *name,
                     const gptc_tensor *inputs, size_t inputCount,
                     gptc_tensor *outputs, size_t outputCount);

//===----------------------------------------------------------------------===//
// Execution
//===----------------------------------------------------------------------===//

/// One execution of an entry: its tensors and dynamic sizes.
struct Frame {
  const gptc_entry_desc *entry;
  const int64_t *dims; ///< [dim_count]
  void *const *inputs;
  void *const *outputs;
  const Workspace *workspace;
};

/// Sets the floating-point mode that the promised bits need (round to nearest,
/// denormals kept, nothing trapped), whatever the host has set for its own
/// work, and puts the host's back, its exception flags included. Around all
/// arithmetic, on every thread that does some.
class FloatMode {
public:
  FloatMode() : host(get()) {
    if ((host & ~flags) != plain)
      set(plain);
  }
  ~FloatMode() {
    if (get() != host)
      set(host);
  }
  FloatMode(const FloatMode &) = delete;

private:
#if defined(__x86_64__)
  // MXCSR; Intel SDM vol. 1, 10.2.3: all exceptions masked, no FTZ, no DAZ.
  static constexpr uint64_t flags = 0x3f, plain = 0x1f80;
  static uint64_t get() { return __builtin_ia32_stmxcsr(); }
  static void set(uint64_t value) { __builtin_ia32_ldmxcsr(value); }
#else
  // FPCR; its flags are in another register (Arm ARM, C5.2.8).
  static constexpr uint64_t flags = 0, plain = 0;
  static uint64_t get() { return __builtin_aarch64_get_fpcr64(); }
  static void set(uint64_t value) { __builtin_aarch64_set_fpcr64(value); }
#endif
  uint64_t host;
};

/// Sets session.args and the call's sizes. False if there is nothing to do:
/// what is computed from wanted rows alone is not computed without any.
bool bindCall(Session &session, const Frame &frame, const gptc_call_desc &call,
              int64_t *dims);
/// Runs the entry's calls in order. Allocates nothing and cannot fail, but that
/// a GPU's queue keeps its first error.
void execute(Session &session, const Frame &frame);
/// Runs body(data, i) for every i in [0, limits.threads), once each.
void runOnThreads(Session &session, void (*body)(void *, int32_t), void *data);

/// "[2, 3]", cut at `size`.
void printShape(int32_t rank, const int64_t *shape, char *out, size_t size,
                bool anyBelow0 = false);
const char *dtypeName(int32_t dtype);

/// Bytes of a size at `dims`.
uint64_t sizeAt(const gptc_size &size, const int64_t *dims);
/// Bytes of scratch that one thread needs for the entry at `dims`.
uint64_t scratchAt(const gptc_entry_desc &entry, const int64_t *dims);
/// Lays the buffers of the entry at `dims` out, with new memory if the old does
/// not suffice.
bool placeBuffers(const gptc_host &host, Queue &queue,
                  const gptc_entry_desc &entry, const int64_t *dims,
                  Workspace &workspace);
/// Gives every thread, or the GPU, `bytes` of scratch at least.
bool growScratch(Session &session, uint64_t bytes);

/// Worker threads that wait for the next kernel, spinning first.
Pool *openPool(const gptc_host &host, int32_t threads);
void closePool(const gptc_host &host, Pool *pool);
int32_t poolThreads(const Pool *pool);
/// Runs body(data, i) for every i in [0, poolThreads), once each.
void runParts(Pool *pool, void (*body)(void *, int32_t), void *data);

} // namespace gptc::core

#endif // GPTC_RUNTIME_CORE_CORE_H
