//===- Packers.h - parts of the weight packers ------------------*- C++ -*-===//
//
// Shared by the packers of scalar formats, of block formats and what chooses
// between them. Compiled as WeightLayout.cpp says.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "gptc/Format/WeightLayout.h"
#include "gptc/Runtime/gptc.h"
#include <string.h>

namespace gptc::format {

constexpr int64_t blockK = 32;

template <typename T> T load(const void *from) {
  T value;
  memcpy(&value, from, sizeof(T));
  return value;
}

inline float bitsToFloat(uint32_t bits) { return load<float>(&bits); }

inline float halfToFloat(uint16_t half) {
  uint32_t magnitude = half & 0x7fffu;
  uint32_t exponent = magnitude >> 10;
  // Rebias 15 to 127; infinities and NaNs once more, to the top exponent.
  uint32_t normal = (magnitude << 13) + (112u << 23);
  normal += exponent == 31 ? 112u << 23 : 0;
  float subnormal =
      static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f;
  uint32_t bits = exponent == 0 ? load<uint32_t>(&subnormal) : normal;
  return bitsToFloat(bits | (static_cast<uint32_t>(half & 0x8000u) << 16));
}

/// To nearest, ties to even; a NaN stays one.
inline uint32_t roundToBF16(float x) {
  uint32_t bits = load<uint32_t>(&x);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return bits >> 16 | 0x40u;
  return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

inline uint32_t pairOfBF16(float even, float odd) {
  return roundToBF16(even) | roundToBF16(odd) << 16;
}

/// The feature of the source that is packed as feature i.
inline int64_t sourceFeature(const gptc_weight_desc &w, int64_t i) {
  return w.n0 + (w.take ? i / w.take * w.of + i % w.take : i);
}

inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/// Bytes of a stored block of 32 values.
inline int64_t blockBytes(int32_t dtype) {
  return dtype == GPTC_Q8_0 ? 34 : dtype == GPTC_Q4_0 ? 18 : 20;
}

/// As gptc_pack_weight, without its shift, for sources of f32, f16 and bf16.
int packScalars(const gptc_weight_desc &w, const char *source, char *out);
/// The same for sources of q8_0, q4_0 and q4_1.
int packBlocks(const gptc_weight_desc &w, const char *source, char *out);

} // namespace gptc::format
