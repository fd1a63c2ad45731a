//===- Numbers.h - what constants of a model may be -------------*- C++ -*-===//
//
// Bounds of the numbers that an op divides by or multiplies with a position:
// within them, operands of ordinary size give no infinity and no NaN in f32. A
// scale factor, a fill or an arith.constant has no such bound but to be a
// number of f32: its product overflows as any other of the graph does.
//
//===----------------------------------------------------------------------===//
#pragma once
#include <cmath>

namespace gptc::gpt {

/// Of an eps or a cap: in f32 finite, and normal, so that its reciprocal is
/// finite and it is not 0 for a host that flushes denormal numbers.
inline bool isDivisor(double value) {
  float narrow = static_cast<float>(value);
  return std::isnormal(narrow) && narrow > 0;
}

/// Divisors of rotary frequencies are finite and at least this. The fastest
/// pair turns by 1 / divisor radians a position, of which there are up to 2^31:
/// its angle stays below 2^41, where the reduction of a sine's argument is
/// still exact to f32. Models have divisors from 1 to about 100.
inline constexpr double leastRopeFactor = 0.001;
inline bool isRopeFactor(double value) {
  return std::isfinite(value) && value >= leastRopeFactor;
}

/// Slopes of ALiBi are at most this in size, as f32, so that 2^31 positions
/// give a finite bias.
inline constexpr float mostAlibiSlope = 1e29f;
inline bool isAlibiSlope(double value) {
  return std::fabs(static_cast<float>(value)) <= mostAlibiSlope; // no NaN is
}

} // namespace gptc::gpt
