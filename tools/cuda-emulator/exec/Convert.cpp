// cvt. Integers go through 64 bits, floating-point numbers through double,
// which holds all of them; ConvertCommon.cpp has what most kernels convert.
#include "Convert.h"
#include "Environment.h"
#include "Numbers.h"

#include <limits>

namespace emu::EMU_LEVEL {

namespace {

enum Whole : uint8_t { NoWhole, ToNearest, ToZero, ToFloor, ToCeiling };

bool isInteger(Ty type) { return type >= Ty::U8 && type <= Ty::S64; }
bool isSigned(Ty type) { return type >= Ty::S8 && type <= Ty::S64; }
bool isFloat(Ty type) {
  return type == Ty::F16 || type == Ty::BF16 || type == Ty::F32 ||
         type == Ty::F64;
}

// --- reading and writing values of a type in registers of a width ---

template <class T, class R> struct As {
  static void read(const void *from, int64_t *to) {
    const R *at = static_cast<const R *>(from);
    for (int i = 0; i < 32; ++i)
      to[i] = int64_t(T(at[i]));
  }
  static void write(void *to, uint32_t mask, const int64_t *from) {
    each(static_cast<R *>(to), mask,
         [=](int i) { return R(std::make_signed_t<R>(T(from[i]))); });
  }
};
template <class T> struct AsUnsigned {
  template <class R>
  static void write(void *to, uint32_t mask, const int64_t *from) {
    each(static_cast<R *>(to), mask, [=](int i) { return R(T(from[i])); });
  }
};

template <class T> void readWide(const void *at, int width, int64_t *to) {
  if (width == 16)
    As<T, uint16_t>::read(at, to);
  else if (width == 32)
    As<T, uint32_t>::read(at, to);
  else
    As<T, uint64_t>::read(at, to);
}
void readInteger(const void *at, Ty type, int width, int64_t *to) {
  switch (type) {
  case Ty::U8:
    return readWide<uint8_t>(at, width, to);
  case Ty::S8:
    return readWide<int8_t>(at, width, to);
  case Ty::U16:
    return readWide<uint16_t>(at, width, to);
  case Ty::S16:
    return readWide<int16_t>(at, width, to);
  case Ty::U32:
    return readWide<uint32_t>(at, width, to);
  case Ty::S32:
    return readWide<int32_t>(at, width, to);
  default:
    return readWide<uint64_t>(at, width, to);
  }
}

template <class T>
void writeWide(void *at, int width, uint32_t mask, const int64_t *from) {
  using U = AsUnsigned<T>;
  // A narrower signed value is extended by its sign, others by zeroes.
  if (width == 16)
    std::is_signed_v<T> ? As<T, uint16_t>::write(at, mask, from)
                        : U::template write<uint16_t>(at, mask, from);
  else if (width == 32)
    std::is_signed_v<T> ? As<T, uint32_t>::write(at, mask, from)
                        : U::template write<uint32_t>(at, mask, from);
  else
    std::is_signed_v<T> ? As<T, uint64_t>::write(at, mask, from)
                        : U::template write<uint64_t>(at, mask, from);
}
void writeInteger(void *at, Ty type, int width, uint32_t mask,
                  const int64_t *from) {
  switch (type) {
  case Ty::U8:
    return writeWide<uint8_t>(at, width, mask, from);
  case Ty::S8:
    return writeWide<int8_t>(at, width, mask, from);
  case Ty::U16:
    return writeWide<uint16_t>(at, width, mask, from);
  case Ty::S16:
    return writeWide<int16_t>(at, width, mask, from);
  case Ty::U32:
    return writeWide<uint32_t>(at, width, mask, from);
  case Ty::S32:
    return writeWide<int32_t>(at, width, mask, from);
  default:
    return writeWide<uint64_t>(at, width, mask, from);
  }
}

void readFloat(const void *at, Ty type, double *to) {
  auto half = static_cast<const uint16_t *>(at);
  auto single = static_cast<const float *>(at);
  auto full = static_cast<const double *>(at);
  switch (type) {
  case Ty::F16:
    for (int i = 0; i < 32; ++i)
      to[i] = halfToFloat(half[i]);
    return;
  case Ty::BF16:
    for (int i = 0; i < 32; ++i)
      to[i] = bfloatToFloat(half[i]);
    return;
  case Ty::F32:
    for (int i = 0; i < 32; ++i)
      to[i] = single[i];
    return;
  default:
    for (int i = 0; i < 32; ++i)
      to[i] = full[i];
  }
}

// --- the general conversions; op.regs: types and widths ---

Ty from(const Op &op) { return Ty(op.regs[0]); }
Ty to(const Op &op) { return Ty(op.regs[1]); }

Flow integerToInteger(Warp &w, const Op &op, uint32_t mask) {
  int64_t values[32];
  readInteger(w.in<uint8_t>(op.a), from(op), op.regs[2], values);
  if (op.mode & Saturate) {
    int bits = bitsOf(to(op));
    bool wide = bits == 64, source = isSigned(from(op));
    for (int64_t &value : values) {
      if (isSigned(to(op))) {
        int64_t most = wide ? INT64_MAX : (1ll << (bits - 1)) - 1;
        if (!source && uint64_t(value) > uint64_t(most))
          value = most;
        else
          value = std::clamp<int64_t>(value, -most - 1, most);
      } else {
        uint64_t most = wide ? UINT64_MAX : (1ull << bits) - 1;
        if (source && value < 0)
          value = 0;
        else
          value = int64_t(std::min(uint64_t(value), most));
      }
    }
  }
  writeInteger(w.out<uint8_t>(op.d), to(op), op.regs[3], mask, values);
  return Flow::Next;
}

Flow integerToFloat(Warp &w, const Op &op, uint32_t mask) {
  int64_t values[32];
  readInteger(w.in<uint8_t>(op.a), from(op), op.regs[2], values);
  bool large = from(op) == Ty::U64;
  if (to(op) == Ty::F32) {
    float *d = w.out<float>(op.d);
    if (large)
      each(d, mask, [=](int i) { return float(uint64_t(values[i])); });
    else
      each(d, mask, [=](int i) { return float(values[i]); });
  } else if (to(op) == Ty::F64) {
    double *d = w.out<double>(op.d);
    if (large)
      each(d, mask, [=](int i) { return double(uint64_t(values[i])); });
    else
      each(d, mask, [=](int i) { return double(values[i]); });
  } else {
    // To nearest even among numbers of 64 bits: rounding to odd on the way.
    bool f16 = to(op) == Ty::F16;
    each(w.out<uint16_t>(op.d), mask, [=](int i) -> uint16_t {
      bool negative = !large && values[i] < 0;
      uint64_t m = negative ? 0 - uint64_t(values[i]) : uint64_t(values[i]);
      int shift = m >> 52 ? 12 : 0;
      uint64_t kept = m >> shift;
      kept |= (kept << shift) != m;
      double x = std::ldexp(double(kept), shift);
      return encode(negative ? -x : x, f16 ? 5 : 8, f16 ? 10 : 7, op.rounding);
    });
  }
  return Flow::Next;
}

double wholeOf(double x, uint8_t mode) {
  switch (mode) {
  case ToNearest:
    return std::nearbyint(x);
  case ToZero:
    return std::trunc(x);
  case ToFloor:
    return std::floor(x);
  case ToCeiling:
    return std::ceil(x);
  default:
    return x;
  }
}

// Numbers out of range become the nearest in it, NaN becomes 0.
Flow floatToInteger(Warp &w, const Op &op, uint32_t mask) {
  double values[32];
  int64_t results[32];
  readFloat(w.in<uint8_t>(op.a), from(op), values);
  int bits = bitsOf(to(op));
  double most = std::ldexp(1.0, isSigned(to(op)) ? bits - 1 : bits);
  double least = isSigned(to(op)) ? -most : 0;
  int64_t highest = isSigned(to(op)) ? int64_t((1ull << (bits - 1)) - 1)
                    : bits == 64     ? -1
                                     : int64_t((1ull << bits) - 1);
  for (int i = 0; i < 32; ++i) {
    double x = values[i];
    if (op.flush)
      x = flushed(float(x));
    x = wholeOf(x, op.shape);
    if (x != x)
      results[i] = 0;
    else if (x >= most)
      results[i] = highest;
    else if (x <= least)
      results[i] = isSigned(to(op)) ? int64_t(least) : 0;
    else
      results[i] = x >= 0x1p63 ? int64_t(uint64_t(x)) : int64_t(x);
  }
  writeInteger(w.out<uint8_t>(op.d), to(op), op.regs[3], mask, results);
  return Flow::Next;
}

Flow floatToFloat(Warp &w, const Op &op, uint32_t mask) {
  double values[32];
  readFloat(w.in<uint8_t>(op.a), from(op), values);
  for (double &x : values) {
    if (op.flush)
      x = from(op) == Ty::F32 ? double(flushed(float(x))) : x;
    x = wholeOf(x, op.shape);
    if (op.mode & Saturate)
      x = x > 0 ? (x < 1 ? x : 1.0) : 0.0;
    if (op.mode & Relu)
      x = x < 0 ? 0.0 : x;
  }
  switch (to(op)) {
  case Ty::F16:
  case Ty::BF16: {
    bool f16 = to(op) == Ty::F16;
    each(w.out<uint16_t>(op.d), mask, [&](int i) -> uint16_t {
      return encode(values[i], f16 ? 5 : 8, f16 ? 10 : 7, op.rounding);
    });
    break;
  }
  case Ty::F32:
    each(w.out<float>(op.d), mask, [&](int i) {
      uint32_t bits = encode(values[i], 8, 23, op.rounding);
      float x = std::bit_cast<float>(bits);
      return op.flush ? flushed(x) : x;
    });
    break;
  default:
    each(w.out<double>(op.d), mask,
         [&](int i) { return canonical(values[i]); });
  }
  return Flow::Next;
}

// 10 bits of mantissa, ties away from zero.
struct Tf32 {
  static uint32_t run(uint32_t a) {
    bool finite = (a & 0x7f800000) != 0x7f800000;
    return finite ? (a + 0x1000) & 0xffffe000 : (a & 0x7fffff ? nanBits : a);
  }
};
struct Tf32Even {
  static uint32_t run(uint32_t a) {
    bool finite = (a & 0x7f800000) != 0x7f800000;
    return finite ? (a + 0xfff + (a >> 13 & 1)) & 0xffffe000
                  : (a & 0x7fffff ? nanBits : a);
  }
};

} // namespace

bool buildConvert(Builder &b, const Statement &s, Op &op) {
  if (s.name() != "cvt" || s.parts.size() < 3 || s.has("pack"))
    return false;
  Ty from = typeOf(s.parts.back());
  Ty to = typeOf(s.parts[s.parts.size() - 2]);
  if ((to == Ty::F16x2 || to == Ty::BF16x2) && from == Ty::F32)
    return buildPairConversion(b, s, to, op);
  b.expectCount(2);
  if (to == Ty::TF32 && from == Ty::F32) {
    if (s.has("satfinite") || s.has("relu") || !(s.has("rna") || s.has("rn")))
      return false;
    op.a = b.in(1, Ty::B32);
    op.d = b.out(0, Ty::B32);
    op.run = s.has("rna") ? unary<Tf32, uint32_t> : unary<Tf32Even, uint32_t>;
    return true;
  }
  if ((!isInteger(from) && !isFloat(from)) || (!isInteger(to) && !isFloat(to)))
    return false;
  int wideFrom = 0, wideTo = 0;
  // f16 values may lie in wider registers, too, but nvcc does not write that.
  op.a = b.inWide(b.operand(1), from, wideFrom);
  op.d = b.outWide(b.operand(0), to, wideTo);
  if ((isFloat(from) && wideFrom != bitsOf(from)) ||
      (isFloat(to) && wideTo != bitsOf(to)))
    b.fail("expected registers of the floating-point type's width");
  op.regs = {int32_t(from), int32_t(to), wideFrom, wideTo};
  op.mode = (s.has("sat") ? Saturate : 0) | (s.has("relu") ? Relu : 0);
  op.shape = s.has("rni")   ? ToNearest
             : s.has("rzi") ? ToZero
             : s.has("rmi") ? ToFloor
             : s.has("rpi") ? ToCeiling
                            : NoWhole;
  op.rounding = s.has("rz")   ? Rounding::Zero
                : s.has("rm") ? Rounding::Down
                : s.has("rp") ? Rounding::Up
                              : Rounding::Nearest;
  op.flush = s.has("ftz");
  if (s.has("satfinite"))
    return false;
  op.run = commonConversion(s, to, from, wideFrom, wideTo);
  if (op.run)
    return true;
  if (isInteger(from) && isInteger(to)) {
    op.run = integerToInteger;
  } else if (isInteger(from)) {
    op.run = integerToFloat;
    if (op.rounding != Rounding::Nearest && bitsOf(to) >= 32) {
      op.inner = op.run;
      op.run = inMode;
    }
  } else if (isInteger(to)) {
    op.run = floatToInteger;
  } else {
    op.run = floatToFloat;
  }
  return true;
}

} // namespace emu::EMU_LEVEL
