//===- Threads.cpp - Worker threads of a session --------------------------===//
//
// A kernel of a decode step lasts tens of microseconds, so a worker that has
// finished one spins a while for the next before it sleeps in the kernel
// (futex). The calling thread takes part. Each thread owns the part of its own
// number, and a thread that is done takes over parts whose owner has not woken
// up, so that one descheduled worker does not hold up the step. Which thread
// computes a part never changes its bits.
//
// Parts are claimed by generation: claims[i] holds the number of the last job
// in which part i was taken, so a worker that wakes late cannot take a part of
// a job that is over.
//
//===----------------------------------------------------------------------===//

#include "Core.h"
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace gptc::core {

/// A word on a cache line of its own.
struct alignas(64) Word {
  uint32_t value;
};

struct Pool {
  Word generation; ///< number of the job; workers sleep on it
  Word pending;    ///< parts not done; the caller sleeps on it
  Word sleepers;   ///< workers that sleep or are about to
  Word callerSleeps;
  Word *claims; ///< [threads]
  void (*body)(void *, int32_t);
  void *data;
  pthread_t *threads; ///< [count - 1]
  struct Worker *workers;
  int32_t count; ///< threads with the caller
  uint32_t stop;
  uint64_t spinTicks;
  Block memory;
};

struct Worker {
  Pool *pool;
  int32_t part;
};

static long futex(uint32_t *word, int op, uint32_t value) {
  return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, nullptr,
                 nullptr, 0);
}

static uint64_t ticks() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#else
  uint64_t value;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#endif
}

static void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  asm volatile("yield");
#endif
}

/// Spins until *word differs from `value` or the time is up; returns *word.
static uint32_t spinWhile(const Pool &pool, const uint32_t *word,
                          uint32_t value) {
  uint64_t begin = ticks();
  uint32_t now;
  while ((now = __atomic_load_n(word, __ATOMIC_ACQUIRE)) == value &&
         ticks() - begin < pool.spinTicks)
    relax();
  return now;
}

/// Takes the parts that nobody has taken, its own first.
static void takeParts(Pool &pool, int32_t own, uint32_t generation) {
  for (int32_t i = 0; i < pool.count; ++i) {
    int32_t part = own + i < pool.count ? own + i : own + i - pool.count;
    uint32_t before = generation - 1;
    if (!__atomic_compare_exchange_n(&pool.claims[part].value, &before,
                                     generation, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
      continue;
    pool.body(pool.data, part);
    if (__atomic_sub_fetch(&pool.pending.value, 1, __ATOMIC_SEQ_CST) == 0 &&
        __atomic_load_n(&pool.callerSleeps.value, __ATOMIC_SEQ_CST))
      futex(&pool.pending.value, FUTEX_WAKE, 1);
  }
}

static void *work(void *argument) {
  Worker &worker = *static_cast<Worker *>(argument);
  Pool &pool = *worker.pool;
  for (uint32_t seen = 0;;) {
    uint32_t now = spinWhile(pool, &pool.generation.value, seen);
    if (now == seen) {
      __atomic_fetch_add(&pool.sleepers.value, 1, __ATOMIC_SEQ_CST);
      while ((now = __atomic_load_n(&pool.generation.value,
                                    __ATOMIC_SEQ_CST)) == seen)
        futex(&pool.generation.value, FUTEX_WAIT, seen);
      __atomic_fetch_sub(&pool.sleepers.value, 1, __ATOMIC_SEQ_CST);
    }
    seen = now;
    if (__atomic_load_n(&pool.stop, __ATOMIC_ACQUIRE))
      return nullptr;
    takeParts(pool, worker.part, seen);
  }
}

static void nextGeneration(Pool &pool, uint32_t generation) {
  __atomic_store_n(&pool.generation.value, generation, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&pool.sleepers.value, __ATOMIC_SEQ_CST))
    futex(&pool.generation.value, FUTEX_WAKE, INT32_MAX);
}

void runParts(Pool *pool, void (*body)(void *, int32_t), void *data) {
  pool->body = body;
  pool->data = data;
  __atomic_store_n(&pool->pending.value, pool->count, __ATOMIC_RELAXED);
  uint32_t generation = pool->generation.value + 1;
  nextGeneration(*pool, generation);
  takeParts(*pool, 0, generation);

  uint64_t begin = ticks();
  uint32_t left;
  while ((left = __atomic_load_n(&pool->pending.value, __ATOMIC_ACQUIRE)) &&
         ticks() - begin < pool->spinTicks)
    relax();
  if (!left)
    return;
  __atomic_store_n(&pool->callerSleeps.value, 1, __ATOMIC_SEQ_CST);
  while ((left = __atomic_load_n(&pool->pending.value, __ATOMIC_SEQ_CST)))
    futex(&pool->pending.value, FUTEX_WAIT, left);
  __atomic_store_n(&pool->callerSleeps.value, 0, __ATOMIC_RELAXED);
}

int32_t cpuCount() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int count = sched_getaffinity(0, sizeof(set), &set) ? 0 : CPU_COUNT(&set);
  return count < 1 ? 1 : count;
}

int32_t poolThreads(const Pool *pool) { return pool->count; }

Pool *openPool(const gptc_host &host, int32_t threads) {
  Block memory;
  uint64_t bytes = sizeof(Pool) + threads * (sizeof(Word) + sizeof(Worker) +
                                             sizeof(pthread_t));
  if (!allocate(host, bytes, true, memory))
    return nullptr;
  Pool *pool = static_cast<Pool *>(memory.pointer);
  pool->memory = memory;
  pool->claims = reinterpret_cast<Word *>(pool + 1);
  pool->workers = reinterpret_cast<Worker *>(pool->claims + threads);
  pool->threads = reinterpret_cast<pthread_t *>(pool->workers + threads);
  // About 100 us, several kernels of a decode step. With more threads than
  // CPUs a spinning thread would only keep another from running.
  pool->spinTicks = threads <= cpuCount() ? 250000 : 0;

  // The host's signal handlers must not run on threads that it does not know.
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  int32_t started = 0;
  for (; started < threads - 1; ++started) {
    pool->workers[started] = {pool, started + 1};
    if (pthread_create(&pool->threads[started], nullptr, work,
                       &pool->workers[started]))
      break;
  }
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  // With fewer threads than asked for it is slower, not wrong.
  pool->count = started + 1;
  return pool;
}

void closePool(const gptc_host &host, Pool *pool) {
  if (!pool)
    return;
  __atomic_store_n(&pool->stop, 1, __ATOMIC_RELEASE);
  nextGeneration(*pool, pool->generation.value + 1);
  for (int32_t i = 0; i < pool->count - 1; ++i)
    pthread_join(pool->threads[i], nullptr);
  Block memory = pool->memory;
  release(host, memory);
}

} // namespace gptc::core
