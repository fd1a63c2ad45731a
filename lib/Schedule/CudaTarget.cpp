//===- CudaTarget.cpp - limits of compute capabilities --------------------===//
#include "gptc/Schedule/CudaTarget.h"
#include "gptc/Dialect/Gpt/NearestName.h"
#include <fmt/format.h>

using namespace gptc;
using llvm::StringRef;

static std::vector<CudaTarget> table() {
  auto make = [](int capability, int64_t perBlock, int64_t perSM,
                 int64_t threads) {
    CudaTarget t;
    t.name = fmt::format("sm_{}", capability);
    t.capability = capability;
    t.sharedPerBlock = perBlock << 10;
    t.sharedPerSM = perSM << 10;
    t.threadsPerSM = threads;
    return t;
  };
  // The driver keeps 1 KB of each block's shared memory.
  return {make(80, 163, 164, 2048), make(86, 99, 100, 1536),
          make(89, 99, 100, 1536)};
}

std::vector<std::string> gptc::cudaTargetNames() {
  std::vector<std::string> names;
  for (const CudaTarget &target : table())
    names.push_back(target.name);
  return names;
}

std::optional<CudaTarget> gptc::lookupCudaTarget(StringRef march,
                                                 std::string &error) {
  for (CudaTarget &target : table())
    if (march == target.name)
      return target;
  if (march.contains(',')) {
    error = fmt::format("-march: expected one of sm_80, sm_86 or sm_89 with "
                        "--target=cuda, got '{}'; newer GPUs run a package of "
                        "an older one, too, by the PTX in it",
                        march.str());
    return std::nullopt;
  }
  // Those that there are: sm_75, sm_90, sm_90a.
  StringRef digits = march;
  int capability;
  if (digits.consume_front("sm_") &&
      !digits.rtrim("af").getAsInteger(10, capability) && capability >= 50) {
    error =
        capability < 80
            ? fmt::format("-march={} is not supported: kernels use bf16 tensor "
                          "cores and asynchronous copies, which sm_80 was the "
                          "first to have; expected sm_80, sm_86 or sm_89",
                          march.str())
            : fmt::format("-march={} is not supported by this version; "
                          "expected sm_80, sm_86 or sm_89, whose packages hold "
                          "PTX that newer GPUs run, too",
                          march.str());
    return std::nullopt;
  }
  StringRef nearest = nearestName(march, cudaTargetNames());
  error = fmt::format(
      "unknown -march '{}' of --target=cuda: expected sm_80, sm_86 or sm_89{}",
      march.str(),
      nearest.empty() ? ""
                      : fmt::format("; did you mean '{}'?", nearest.str()));
  return std::nullopt;
}
