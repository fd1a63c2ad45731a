//===- Bench.h - The measurements of gptc-bench ---------------------------===//
#ifndef GPTC_LIB_RUNTIME_HOST_BENCH_H
#define GPTC_LIB_RUNTIME_HOST_BENCH_H

#include "gptc/Runtime/Host/Package.h"
#include <vector>

namespace gptc::host {

struct BenchRequest {
  std::string folder;
  int64_t prefill = 512, decode = 128; ///< tokens of one sequence
  int64_t batch = 1;                   ///< sequences
  int64_t threads = 0, runs = 5;
  bool json = false;
};

/// Sums over one prefill and decode with an observer.
struct KernelTime {
  std::string name;
  int64_t calls = 0;
  double seconds = 0, flops = 0, bytes = 0;
};

struct BenchResult {
  double prefillSeconds = 0, decodeSeconds = 0; ///< medians over the runs
  int64_t kvBytes = 0, workspaceBytes = 0;
  std::string device; ///< the GPU's name; empty: the kernels run on the CPU
  std::vector<KernelTime> kernels; ///< by time, longest first
};

/// A step has ended when its logits are in the host's memory, on a GPU, too.
/// Prefill: every sequence's prompt, the logits of its last token alone.
/// Decode: one token of every sequence a step, with its logits.
std::optional<BenchResult> bench(const BenchRequest &request,
                                 const Package &package, std::string &error);

} // namespace gptc::host

#endif // GPTC_LIB_RUNTIME_HOST_BENCH_H
