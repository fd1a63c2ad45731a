//===- BenchWork.h - How much work a kernel's call is ---------------------===//
//
// Counted from the manifest and the sizes of the call, not measured.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_LIB_RUNTIME_HOST_BENCHWORK_H
#define GPTC_LIB_RUNTIME_HOST_BENCHWORK_H

#include "gptc/Runtime/gptc.h"
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace gptc::host {

/// The tokens of a step.
struct StepTokens {
  struct Sequence {
    int32_t end = 0;   ///< positions after the step
    int32_t count = 0; ///< tokens in it
  };
  std::vector<int32_t> positions; ///< of each token
  std::vector<Sequence> sequences;
};

/// Of one call. Both are 0 where the manifest does not say enough.
struct CallWork {
  double flops = 0; ///< of GEMMs and of attention over the KV cache
  double bytes = 0; ///< weights as packed, each activation and each page that
                    ///< it needs, once
  bool dot8 = false; ///< dot products of 8-bit numbers
};

/// Knows the kernels of one manifest, its lower levels included.
class WorkOfKernels {
public:
  explicit WorkOfKernels(const nlohmann::json &manifest);
  CallWork call(const gptc_event &event, const StepTokens &tokens) const;

private:
  /// An activation; a dimension that is known when running is an index.
  struct Array {
    double bytes = 1; ///< of an element, times the static sizes
    std::vector<int32_t> dims;
  };
  struct Kernel {
    double flopsPerRow = 0, weightBytes = 0;
    Array rows; ///< of the first argument; its `bytes` are a count
    std::vector<Array> arrays;
    bool attends = false; ///< over the KV cache
    bool appends = false; ///< to the KV cache
    bool reads = false;   ///< rows of a table, as many as it returns
    bool gemm = false;
    double width = 0;           ///< of attention: heads times their size
    int64_t window = INT32_MAX; ///< keys that a token sees at most
  };
  void add(const nlohmann::json &manifest);
  void attention(const Kernel &kernel, const StepTokens &tokens,
                 CallWork &work) const;

  std::map<std::string, Kernel, std::less<>> kernels;
  double kvBytes = 0; ///< of a position in a layer
  bool int8 = false;
};

} // namespace gptc::host

#endif // GPTC_LIB_RUNTIME_HOST_BENCHWORK_H
