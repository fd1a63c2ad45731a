//===- CudaTarget.h - what a GPU offers the schedule ------------*- C++ -*-===//
//
// Limits of the compute capabilities that kernels are generated for, from the
// CUDA C++ Programming Guide, "Technical Specifications per Compute
// Capability". Pure data; names are those of -march.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "gptc/Schedule/Precision.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gptc {

struct CudaTarget {
  std::string name; ///< "sm_80"
  int capability = 80;
  int64_t sharedPerBlock = 0;     ///< bytes, after opting in
  int64_t sharedPerSM = 0;        ///< bytes
  int64_t threadsPerSM = 0;       ///< resident
  int64_t registersPerSM = 65536; ///< of 32 bits
  int64_t registersPerThread = 255;
  int64_t threadsPerBlock = 1024;
  int64_t gridX = 2147483647, gridYZ = 65535; ///< blocks
  int64_t copyBytes = 16; ///< of one cp.async or vector load, and its alignment
};

/// Whether inputs have 16 bits. In f32 nothing uses tensor cores, in tf32 GEMMs
/// do and attention does not.
constexpr bool is16Bit(InputPrecision precision) {
  return precision == InputPrecision::BF16 || precision == InputPrecision::F16;
}

/// The description of sm_80, sm_86 or sm_89. On failure `error` says what was
/// expected, with the nearest name.
std::optional<CudaTarget> lookupCudaTarget(llvm::StringRef march,
                                           std::string &error);

/// The names lookupCudaTarget takes, for --list-targets.
std::vector<std::string> cudaTargetNames();

} // namespace gptc
