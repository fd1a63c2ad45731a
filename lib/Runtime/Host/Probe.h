//===- Probe.h - What the machine can do, measured ------------------------===//
#ifndef GPTC_LIB_RUNTIME_HOST_PROBE_H
#define GPTC_LIB_RUNTIME_HOST_PROBE_H

#include <cstdint>
#include <string>

namespace gptc::host {

/// Of a number of threads together; what the CPU cannot do is 0 and unnamed.
struct MachineLimits {
  double f32 = 0;  ///< floating-point operations a second; two a multiply-add
  double bf16 = 0; ///< of dot products of pairs of bf16
  double int8 = 0; ///< operations a second of dot products of 8-bit numbers
  double readBytes = 0; ///< a second, from memory
  std::string f32Unit;  ///< what reached it: "AVX-512", "AVX2 FMA", "SSE2"
  std::string bf16Unit, int8Unit;
  int64_t readSize = 0; ///< bytes that were read to measure it
};

/// Takes about half a second. Each rate is the best of several short windows
/// in which all threads run at once. Memory is read line by line, by every
/// thread in a part of its own of `bytes` (at least 64 MiB, at most 512 MiB):
/// the rate for a working set of this size, whatever part of it a cache keeps.
/// Everything is 0 on a CPU other than x86-64.
MachineLimits probeMachine(int64_t threads, int64_t bytes);

/// The larger of each rate.
MachineLimits best(const MachineLimits &a, const MachineLimits &b);

} // namespace gptc::host

#endif // GPTC_LIB_RUNTIME_HOST_PROBE_H
