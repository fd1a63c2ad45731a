//===- Probe.cpp - What the machine can do, measured ----------------------===//
//
// Loops of one instruction on twelve independent accumulators, which covers the
// latency (4 or 5 cycles) of two units. They are written as assembly, so that
// they are the same in a build without optimisation; the numbers are zeros.
//
//===----------------------------------------------------------------------===//

#include "Probe.h"
#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <sched.h>
#include <thread>
#include <vector>

using namespace gptc::host;

namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

#if defined(__x86_64__)

// An instruction for each of twelve accumulators; CLEAR comes first, so that no
// input is a denormal or a number that traps.
#define EACH(I)                                                                \
  I("0")                                                                       \
  I("1")                                                                       \
  I("2") I("3") I("4") I("5") I("6") I("7") I("8") I("9") I("10") I("1"        \
                                                                    "1")
#define CLOBBER                                                                \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8",      \
      "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#define LOOP(NAME, TARGET, CLEAR, STEP, END)                                   \
  __attribute__((target(TARGET))) void NAME(int64_t rounds) {                  \
    asm volatile(EACH(CLEAR) CLEAR("12") CLEAR("13") "1:\n\t" EACH(STEP)       \
                     EACH(STEP) "dec %0\n\tjnz 1b\n\t" END                     \
                 : "+r"(rounds)                                                \
                 :                                                             \
                 : CLOBBER, "cc");                                             \
  }
constexpr int64_t stepsPerRound = 24;

#define CLEAR_X(N) "xorps %%xmm" N ", %%xmm" N "\n\t"
#define CLEAR_Y(N) "vxorps %%ymm" N ", %%ymm" N ", %%ymm" N "\n\t"
#define CLEAR_Z(N) "vpxord %%zmm" N ", %%zmm" N ", %%zmm" N "\n\t"
#define FMA_Z(N) "vfmadd231ps %%zmm12, %%zmm13, %%zmm" N "\n\t"
#define FMA_Y(N) "vfmadd231ps %%ymm12, %%ymm13, %%ymm" N "\n\t"
#define MULADD_X(N)                                                            \
  "movaps %%xmm12, %%xmm14\n\tmulps %%xmm13, %%xmm14\n\t"                      \
  "addps %%xmm14, %%xmm" N "\n\t"
#define BF16_Z(N) "vdpbf16ps %%zmm12, %%zmm13, %%zmm" N "\n\t"
#define VNNI_Z(N) "vpdpbusd %%zmm12, %%zmm13, %%zmm" N "\n\t"
#define VNNI_Y(N) "%{vex%} vpdpbusd %%ymm12, %%ymm13, %%ymm" N "\n\t"
#define MADD_Y(N)                                                              \
  "vpmaddubsw %%ymm12, %%ymm13, %%ymm14\n\t"                                   \
  "vpmaddwd %%ymm14, %%ymm13, %%ymm14\n\t"                                     \
  "vpaddd %%ymm14, %%ymm" N ", %%ymm" N "\n\t"
#define MADD_X(N)                                                              \
  "movdqa %%xmm12, %%xmm14\n\tpmaddwd %%xmm13, %%xmm14\n\t"                    \
  "paddd %%xmm14, %%xmm" N "\n\t"

LOOP(fmaZ, "avx512f", CLEAR_Z, FMA_Z, "vzeroupper\n\t")
LOOP(fmaY, "avx2,fma", CLEAR_Y, FMA_Y, "vzeroupper\n\t")
LOOP(mulAddX, "sse2", CLEAR_X, MULADD_X, "")
LOOP(bf16Z, "avx512bf16", CLEAR_Z, BF16_Z, "vzeroupper\n\t")
LOOP(vnniZ, "avx512vnni", CLEAR_Z, VNNI_Z, "vzeroupper\n\t")
LOOP(vnniY, "avxvnni", CLEAR_Y, VNNI_Y, "vzeroupper\n\t")
LOOP(maddY, "avx2", CLEAR_Y, MADD_Y, "vzeroupper\n\t")
LOOP(maddX, "sse2", CLEAR_X, MADD_X, "")

struct Unit {
  void (*loop)(int64_t rounds) = nullptr;
  int64_t operations = 0; ///< of a step
  const char *name = "";
};

Unit f32Unit() {
  if (__builtin_cpu_supports("avx512f"))
    return {fmaZ, 32, "AVX-512"};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    return {fmaY, 16, "AVX2 FMA"};
  return {mulAddX, 8, "SSE2"};
}

Unit bf16Unit() {
  if (__builtin_cpu_supports("avx512bf16"))
    return {bf16Z, 64, "AVX-512 BF16"};
  return {};
}

Unit int8Unit() {
  if (__builtin_cpu_supports("avx512vnni"))
    return {vnniZ, 128, "AVX-512 VNNI"};
  if (__builtin_cpu_supports("avxvnni"))
    return {vnniY, 64, "AVX-VNNI"};
  if (__builtin_cpu_supports("avx2"))
    return {maddY, 64, "AVX2"};
  return {maddX, 16, "SSE2, as 16-bit numbers"};
}

/// The CPUs that this process may use.
std::vector<int> allowedCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(set), &set) == 0)
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &set))
        cpus.push_back(cpu);
  return cpus;
}

/// Runs `work`, which returns how much it did, on all threads at once, several
/// times; the best sum of what was done over the time of the slowest. Each
/// thread stays on a CPU of its own: new ones often begin on the same one, and
/// a probe is over before the system spreads them.
double bestRate(int64_t threads, int windows,
                const std::function<double(int64_t thread)> &work) {
  std::vector<int> cpus = allowedCpus();
  std::vector<double> done(threads);
  double best = 0;
  Clock::time_point begin;
  std::barrier start(threads, [&]() noexcept { begin = Clock::now(); });
  std::barrier end(threads, [&]() noexcept {
    double sum = 0;
    for (double amount : done)
      sum += amount;
    best = std::max(best, sum / seconds(Clock::now() - begin));
  });
  auto run = [&](int64_t thread) {
    if (!cpus.empty()) {
      cpu_set_t own;
      CPU_ZERO(&own);
      CPU_SET(cpus[thread % cpus.size()], &own);
      sched_setaffinity(0, sizeof(own), &own); // of this thread
    }
    for (int window = 0; window < windows; ++window) {
      start.arrive_and_wait();
      done[thread] = work(thread);
      end.arrive_and_wait();
    }
  };
  {
    std::vector<std::jthread> all;
    for (int64_t thread = 0; thread < threads; ++thread)
      all.emplace_back(run, thread);
  }
  return best;
}

double unitRate(int64_t threads, const Unit &unit) {
  if (!unit.loop)
    return 0;
  return bestRate(threads, 5, [&](int64_t) {
    constexpr int64_t rounds = 2000;
    double done = 0;
    auto begin = Clock::now();
    do {
      unit.loop(rounds);
      done += static_cast<double>(rounds * stepsPerRound * unit.operations);
    } while (seconds(Clock::now() - begin) < 0.02);
    return done;
  });
}

/// Loads a word of every line of 64 bytes; `bytes` is a multiple of 256. What
/// lies 4 KiB ahead is asked for, since hardware stops at the end of a page.
void readLines(const char *at, int64_t bytes) {
  for (const char *end = at + bytes; at != end; at += 256)
    asm volatile("prefetcht0 4096(%0)\n\tprefetcht0 4160(%0)\n\t"
                 "prefetcht0 4224(%0)\n\tprefetcht0 4288(%0)\n\t"
                 "mov (%0), %%rax\n\tmov 64(%0), %%rax\n\t"
                 "mov 128(%0), %%rax\n\tmov 192(%0), %%rax"
                 :
                 : "r"(at)
                 : "rax", "memory");
}

double readRate(int64_t threads, int64_t bytes) {
  int64_t part = bytes / threads / 4096 * 4096;
  std::unique_ptr<char, void (*)(void *)> memory(
      static_cast<char *>(std::aligned_alloc(4096, part * threads)), std::free);
  if (!memory)
    return 0;
  // Pages that were never written would all be the one page of zeros.
  std::memset(memory.get(), 1, part * threads);
  return bestRate(threads, 4, [&](int64_t thread) {
    readLines(memory.get() + thread * part, part);
    return static_cast<double>(part);
  });
}

#endif

} // namespace

MachineLimits gptc::host::probeMachine(int64_t threads, int64_t bytes) {
  MachineLimits limits;
#if defined(__x86_64__)
  __builtin_cpu_init();
  threads = std::max<int64_t>(threads, 1);
  auto measure = [&](const Unit &unit, double &rate, std::string &name) {
    rate = unitRate(threads, unit);
    name = unit.name;
  };
  measure(f32Unit(), limits.f32, limits.f32Unit);
  measure(bf16Unit(), limits.bf16, limits.bf16Unit);
  measure(int8Unit(), limits.int8, limits.int8Unit);
  limits.readSize = std::clamp<int64_t>(bytes, 64 << 20, 512 << 20);
  limits.readBytes = readRate(threads, limits.readSize);
#endif
  return limits;
}

MachineLimits gptc::host::best(const MachineLimits &a, const MachineLimits &b) {
  MachineLimits limits = b;
  limits.f32 = std::max(a.f32, b.f32);
  limits.bf16 = std::max(a.bf16, b.bf16);
  limits.int8 = std::max(a.int8, b.int8);
  limits.readBytes = std::max(a.readBytes, b.readBytes);
  return limits;
}
