// The conversions that most kernels use, each with a handler of its own.
#include "Convert.h"
#include "Numbers.h"

namespace emu::EMU_LEVEL {

namespace {

struct FloatOfHalf {
  static float run(uint16_t a) { return canonical(halfToFloat(a)); }
};
struct FloatOfBfloat {
  static float run(uint16_t a) { return canonical(bfloatToFloat(a)); }
};
struct HalfOfFloat {
  static uint16_t run(float a) { return floatToHalf(a); }
};
struct BfloatOfFloat {
  static uint16_t run(float a) { return floatToBfloat(a); }
};
template <class T> struct Same {
  static T run(T a) { return a; }
};
template <class D, class A> struct Cast {
  static D run(A a) { return D(a); }
};
struct RoundFloat {
  static float run(float a) { return canonical(__builtin_rintf(a)); }
};
struct TruncateFloat {
  static float run(float a) { return canonical(__builtin_truncf(a)); }
};
struct FloorFloat {
  static float run(float a) { return canonical(__builtin_floorf(a)); }
};
struct CeilFloat {
  static float run(float a) { return canonical(__builtin_ceilf(a)); }
};
struct SaturateFloat {
  static float run(float a) { return a > 0 ? (a < 1 ? a : 1.0f) : 0.0f; }
};
struct WordOfFloat { // .rzi.s32
  static int32_t run(float a) {
    float x = a != a ? 0.0f : a;
    x = x < -2147483648.0f ? -2147483648.0f : x;
    return x >= 2147483648.0f ? INT32_MAX : int32_t(x);
  }
};
struct RoundedWordOfFloat { // .rni.s32
  static int32_t run(float a) { return WordOfFloat::run(__builtin_rintf(a)); }
};

// d = {a in the high half, b in the low half}
template <uint16_t (*narrow)(float), bool relu>
Flow packPair(Warp &w, const Op &op, uint32_t mask) {
  const float *a = w.in<float>(op.a), *b = w.in<float>(op.b);
  each(w.out<uint32_t>(op.d), mask, [=](int i) {
    float high = a[i], low = b[i];
    if (relu) {
      high = high < 0 ? 0.0f : high;
      low = low < 0 ? 0.0f : low;
    }
    return uint32_t(narrow(high)) << 16 | narrow(low);
  });
  return Flow::Next;
}
Flow packPairSlowly(Warp &w, const Op &op, uint32_t mask) {
  const float *a = w.in<float>(op.a), *b = w.in<float>(op.b);
  bool f16 = Ty(op.regs[1]) == Ty::F16x2;
  each(w.out<uint32_t>(op.d), mask, [=](int i) {
    auto narrow = [&](float x) {
      if (op.mode & Relu)
        x = x < 0 ? 0.0f : x;
      return encode(x, f16 ? 5 : 8, f16 ? 10 : 7, op.rounding);
    };
    return narrow(a[i]) << 16 | narrow(b[i]);
  });
  return Flow::Next;
}

} // namespace

bool buildPairConversion(Builder &b, const Statement &s, Ty to, Op &op) {
  b.expectCount(3);
  op.regs = {int32_t(Ty::F32), int32_t(to)};
  op.a = b.in(1, Ty::F32);
  op.b = b.in(2, Ty::F32);
  op.d = b.out(0, to);
  bool relu = s.has("relu"), f16 = to == Ty::F16x2;
  if (s.has("satfinite"))
    return false;
  op.mode = relu ? Relu : 0;
  op.rounding = s.has("rz") ? Rounding::Zero : Rounding::Nearest;
  if (op.rounding == Rounding::Zero)
    op.run = packPairSlowly;
  else if (f16)
    op.run = relu ? packPair<floatToHalf, true> : packPair<floatToHalf, false>;
  else
    op.run =
        relu ? packPair<floatToBfloat, true> : packPair<floatToBfloat, false>;
  return true;
}

Handler commonConversion(const Statement &s, Ty to, Ty from, int wideFrom,
                         int wideTo) {
  if (s.has("sat"))
    return to == Ty::F32 && from == Ty::F32 && s.parts.size() == 4
               ? unary<SaturateFloat, float>
               : nullptr;
  if (s.has("relu") || s.has("satfinite") || s.has("ftz") || s.has("rz") ||
      s.has("rm") || s.has("rp"))
    return nullptr;
  if (to == Ty::F32) {
    if (from == Ty::F16)
      return unary<FloatOfHalf, float, uint16_t>;
    if (from == Ty::BF16)
      return unary<FloatOfBfloat, float, uint16_t>;
    if (from == Ty::S32 && wideFrom == 32)
      return unary<Cast<float, int32_t>, float, int32_t>;
    if (from == Ty::U32 && wideFrom == 32)
      return unary<Cast<float, uint32_t>, float, uint32_t>;
    if (from == Ty::F64)
      return nullptr;
    if (from == Ty::F32)
      return s.has("rni")   ? unary<RoundFloat, float>
             : s.has("rzi") ? unary<TruncateFloat, float>
             : s.has("rmi") ? unary<FloorFloat, float>
             : s.has("rpi") ? unary<CeilFloat, float>
                            : nullptr;
    return nullptr;
  }
  if (to == Ty::F64 && from == Ty::F32)
    return unary<Cast<double, float>, double, float>;
  if (to == Ty::F16 && from == Ty::F32)
    return unary<HalfOfFloat, uint16_t, float>;
  if (to == Ty::BF16 && from == Ty::F32)
    return unary<BfloatOfFloat, uint16_t, float>;
  if (to == Ty::S32 && from == Ty::F32 && wideTo == 32) {
    if (s.has("rzi"))
      return unary<WordOfFloat, int32_t, float>;
    if (s.has("rni"))
      return unary<RoundedWordOfFloat, int32_t, float>;
    return nullptr;
  }
  if (wideFrom == 32 && wideTo == 64) {
    if (from == Ty::S32 && to == Ty::S64)
      return unary<Cast<int64_t, int32_t>, int64_t, int32_t>;
    if (from == Ty::U32 && (to == Ty::U64 || to == Ty::S64))
      return unary<Cast<uint64_t, uint32_t>, uint64_t, uint32_t>;
  }
  if (wideFrom == 64 && wideTo == 32 && (to == Ty::U32 || to == Ty::S32) &&
      (from == Ty::U64 || from == Ty::S64))
    return unary<Cast<uint32_t, uint64_t>, uint32_t, uint64_t>;
  if (wideFrom == 32 && wideTo == 16 && (to == Ty::U16 || to == Ty::S16) &&
      (from == Ty::U32 || from == Ty::S32))
    return unary<Cast<uint16_t, uint32_t>, uint16_t, uint32_t>;
  return nullptr;
}

} // namespace emu::EMU_LEVEL
