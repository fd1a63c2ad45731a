//===- Bench.h - The measurements of gptc-bench ---------------------------===//
#ifndef GPTC_LIB_RUNTIME_HOST_BENCH_H
#define GPTC_LIB_RUNTIME_HOST_BENCH_H

#include "Probe.h"
#include "gptc/Runtime/Host/Package.h"
#include <optional>
#include <vector>

namespace gptc::host {

struct BenchRequest {
  std::string folder;
  int64_t prefill = 512, decode = 128; ///< tokens of one sequence
  int64_t batch = 1;                   ///< sequences
  int64_t threads = 0, runs = 5;
  bool json = false;
  bool probe = false; ///< measure the machine's limits, too
};

/// Sums over the calls of a kernel in one prefill, or in the decode after it.
struct KernelWork {
  int64_t calls = 0;
  double seconds = 0, flops = 0, bytes = 0; ///< CallWork says of what
  /// What the calls take at least: each the longer one of its operations at the
  /// machine's peak and its bytes at the machine's bandwidth; 0: not probed.
  double limitSeconds = 0;

  KernelWork &operator+=(const KernelWork &other) {
    calls += other.calls;
    seconds += other.seconds;
    flops += other.flops;
    bytes += other.bytes;
    limitSeconds += other.limitSeconds;
    return *this;
  }
};

struct KernelTime {
  std::string name;
  KernelWork prefill, decode;
  double seconds() const { return prefill.seconds + decode.seconds; }
};

struct BenchResult {
  double prefillSeconds = 0, decodeSeconds = 0; ///< medians over the runs
  int64_t kvBytes = 0, workspaceBytes = 0;
  std::optional<MachineLimits> limits; ///< of the CPU, if asked for
  std::string device; ///< the GPU's name; empty: the kernels run on the CPU
  std::vector<KernelTime> kernels; ///< by time, longest first
};

/// A step has ended when its logits are in the host's memory, on a GPU, too.
/// Prefill: every sequence's prompt, the logits of its last token alone.
/// Decode: one token of every sequence a step, with its logits.
std::optional<BenchResult> bench(const BenchRequest &request,
                                 const Package &package, std::string &error);

/// Reports of a measurement: an object of JSON, or tables to read.
std::string benchJson(const BenchRequest &request, const Package &package,
                      const BenchResult &result);
std::string benchText(const BenchRequest &request, const Package &package,
                      const BenchResult &result);

} // namespace gptc::host

#endif // GPTC_LIB_RUNTIME_HOST_BENCH_H
