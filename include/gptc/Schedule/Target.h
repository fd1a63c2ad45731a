//===- Target.h - what a CPU offers the schedule ----------------*- C++ -*-===//
//
// The target description from which tile sizes, weight layouts and kernels
// follow. Pure data; names are those of -march.
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

struct TargetDesc {
  /// The level, "x86-64-v3": that of the host for "native".
  std::string name;
  std::string march;    ///< as spelled on the command line
  int level = 1;        ///< of the x86-64 psABI, 1 to 4
  std::string triple;   ///< LLVM triple
  std::string cpu;      ///< LLVM -mcpu
  std::string tune;     ///< LLVM -mtune: the CPU named, or ""
  std::string features; ///< LLVM feature string, "+avx2,+fma"
  /// What the runtime checks at open: "avx512f,avx512bw".
  std::string requiredFeatures;
  int64_t lanes = 4;      ///< f32 elements of a vector register
  int64_t registers = 16; ///< vector registers
  /// Fused multiply-add; without it a product is rounded before the sum.
  bool fma = false;
  bool f16Convert = false; ///< f16 <-> f32 conversions in hardware
  /// A pair of f32 is loaded into every half of a vector by the load alone
  /// (movddup), a single one is not.
  bool pairBroadcast = false;
  bool permute16 = false; ///< 16-entry register table look-up (AVX-512 vpermps)
  /// Sums of products of pairs of bf16 in hardware (vdpbf16ps), faster than
  /// twice as many multiply-adds of f32.
  bool bf16Dot = false;
  /// Sums of products of four bytes in hardware (vpdpbusd).
  bool byteDot = false;
  int64_t l1Bytes = 32 << 10; ///< data cache
  int64_t l2Bytes = 1 << 20;  ///< per core

  /// NR: output features in a weight panel. Two vectors, so that one broadcast
  /// feeds two multiply-adds.
  int64_t panelWidth() const { return 2 * lanes; }
  /// MR: rows of the largest register tile: MR * 2 accumulators, two weight
  /// vectors and one broadcast fit the registers.
  int64_t tileRows() const { return (registers - 3) / 2; }
};

/// The description of one -march value: native, x86-64, x86-64-v2, x86-64-v3,
/// x86-64-v4, or a CPU that LLVM knows by name, which is its level tuned for
/// it. Sums of products of bytes, and for bf16 of its pairs, are used, and
/// required, where native or the CPU named has them. On failure `error` says what was
/// expected, with the nearest name.
std::optional<TargetDesc>
lookupTarget(llvm::StringRef march, std::string &error,
             InputPrecision precision = InputPrecision::F32);

/// Of "A,B": one description a level, the highest first. Fails as lookupTarget
/// does, and if two values are of one level.
std::optional<std::vector<TargetDesc>>
lookupTargets(llvm::StringRef marches, std::string &error,
              InputPrecision precision = InputPrecision::F32);

/// The names lookupTarget takes beside CPUs', for --list-targets.
std::vector<std::string> targetNames();

} // namespace gptc
