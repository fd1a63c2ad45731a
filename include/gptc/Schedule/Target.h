//===- Target.h - what a CPU offers the schedule ----------------*- C++ -*-===//
//
// The target description from which tile sizes, weight layouts and kernels
// follow. Pure data; names are those of -march.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gptc {

struct TargetDesc {
  /// As given to -march, "native" resolved to the host's level.
  std::string name;
  std::string triple;   ///< LLVM triple
  std::string cpu;      ///< LLVM -mcpu
  std::string features; ///< LLVM feature string, "+avx2,+fma"
  /// What the runtime checks at open: "avx512f,avx512bw".
  std::string requiredFeatures;
  int64_t lanes = 4;      ///< f32 elements of a vector register
  int64_t registers = 16; ///< vector registers
  /// Fused multiply-add; without it a product is rounded before the sum.
  bool fma = false;
  bool f16Convert = false; ///< f16 <-> f32 conversions in hardware
  bool permute16 = false; ///< 16-entry register table look-up (AVX-512 vpermps)
  int64_t l1Bytes = 32 << 10; ///< data cache
  int64_t l2Bytes = 1 << 20;  ///< per core

  /// NR: output features in a weight panel. Two vectors, so that one broadcast
  /// feeds two multiply-adds.
  int64_t panelWidth() const { return 2 * lanes; }
  /// MR: rows of the largest register tile: MR * 2 accumulators, two weight
  /// vectors and one broadcast fit the registers.
  int64_t tileRows() const { return (registers - 3) / 2; }
};

/// The description of a -march value: native, x86-64-v2, x86-64-v3, x86-64-v4
/// or a CPU name that maps to one of the levels. On failure `error` says what
/// was expected, with the nearest name.
std::optional<TargetDesc> lookupTarget(llvm::StringRef march,
                                       std::string &error);

/// The names lookupTarget takes, for --list-targets.
std::vector<std::string> targetNames();

} // namespace gptc
