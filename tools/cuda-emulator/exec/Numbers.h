// Numbers narrower than f32, and what PTX says about NaN and rounding.
#ifndef GPTC_CUDA_EMULATOR_EXEC_NUMBERS_H
#define GPTC_CUDA_EMULATOR_EXEC_NUMBERS_H

#include "../Machine.h"

#include <bit>
#include <cmath>

namespace emu::EMU_LEVEL {

constexpr uint32_t nanBits = 0x7fffffff; // what PTX arithmetic returns
constexpr uint16_t halfNan = 0x7fff;

inline float canonical(float x) {
  return x != x ? std::bit_cast<float>(nanBits) : x;
}
inline double canonical(double x) {
  return x != x ? std::bit_cast<double>(0x7ff8000000000000ull) : x;
}

// f16 to f32, exact, without branches.
inline float halfToFloat(uint16_t h) {
#ifdef __F16C__
  return static_cast<float>(std::bit_cast<_Float16>(h));
#else
  uint32_t sign = uint32_t(h & 0x8000) << 16, rest = h & 0x7fff;
  // Scaling by a power of two makes normal what is subnormal.
  float scaled = std::bit_cast<float>(rest << 13) * 0x1p112f;
  uint32_t bits = std::bit_cast<uint32_t>(scaled);
  bits = rest >= 0x7c00 ? bits | 0x7f800000 : bits;
  return std::bit_cast<float>(bits | sign);
#endif
}

inline float bfloatToFloat(uint16_t b) {
  return std::bit_cast<float>(uint32_t(b) << 16);
}

// A double rounded to a format of so many bits of exponent and mantissa.
inline uint32_t encode(double x, int exponentBits, int mantissaBits,
                       Rounding rounding, bool away = false) {
  uint32_t sign = std::signbit(x) ? 1u << (exponentBits + mantissaBits) : 0;
  uint32_t infinity = ((1u << exponentBits) - 1) << mantissaBits;
  if (x != x)
    return (1u << (exponentBits + mantissaBits)) - 1;
  double m = std::fabs(x);
  if (m == 0)
    return sign;
  if (std::isinf(m))
    return sign | infinity;
  int bias = (1 << (exponentBits - 1)) - 1, least = 1 - bias;
  int e = std::max(std::ilogb(m), least);
  double scaled = std::ldexp(m, mantissaBits - e);
  double whole = std::floor(scaled), rest = scaled - whole;
  bool up = false, negative = sign;
  switch (rounding) {
  case Rounding::Nearest:
    up = rest > 0.5 || (rest == 0.5 && (away || (uint64_t(whole) & 1)));
    break;
  case Rounding::Zero:
    break;
  case Rounding::Down:
    up = negative && rest > 0;
    break;
  case Rounding::Up:
    up = !negative && rest > 0;
    break;
  }
  uint64_t bits = uint64_t(whole) + up + (uint64_t(e - least) << mantissaBits);
  if (bits >= infinity)
    bits = rounding == Rounding::Zero ||
                   (rounding == Rounding::Down && !negative) ||
                   (rounding == Rounding::Up && negative)
               ? infinity - 1
               : infinity;
  return sign | uint32_t(bits);
}

// f32 to f16, to nearest even.
inline uint16_t floatToHalf(float x) {
#ifdef __F16C__
  uint16_t bits = std::bit_cast<uint16_t>(static_cast<_Float16>(x));
  return x != x ? halfNan : bits;
#else
  return encode(x, 5, 10, Rounding::Nearest);
#endif
}

// A double that is the sum of f16 products and terms, to nearest even.
inline uint16_t doubleToHalf(double x) {
  return encode(x, 5, 10, Rounding::Nearest);
}

inline uint16_t floatToBfloat(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  return x != x ? halfNan : uint16_t(rounded);
}

inline float flushed(float x) {
  uint32_t bits = std::bit_cast<uint32_t>(x);
  return (bits & 0x7f800000) ? x : std::bit_cast<float>(bits & 0x80000000);
}

// Of min and max: a NaN loses, or wins with .NaN; -0 is less than 0.
template <class T> inline T leastOf(T a, T b) {
  T r = a < b || (a == b && std::signbit(a)) ? a : b;
  r = a != a ? b : r;
  return canonical(b != b ? a : r);
}
template <class T> inline T mostOf(T a, T b) {
  T r = a > b || (a == b && !std::signbit(a)) ? a : b;
  r = a != a ? b : r;
  return canonical(b != b ? a : r);
}

} // namespace emu::EMU_LEVEL

#endif // GPTC_CUDA_EMULATOR_EXEC_NUMBERS_H
