// Arithmetic of f32 and f64, rounded as IEEE 754 says; a NaN is PTX's own.
// Nothing is contracted: mul and add stay two roundings, as PTX's text says,
// also where a compiler for a device may fuse them.
#include "Environment.h"
#include "Lanes.h"
#include "Numbers.h"

namespace emu::EMU_LEVEL {

namespace {

template <class T> T saturate(T x) {
  return x > T(0) ? (x < T(1) ? x : T(1)) : T(0); // NaN is 0
}
template <bool sat, class T> T finish(T x) {
  return sat ? saturate(x) : canonical(x);
}

template <bool sat> struct Add {
  template <class T> static T run(T a, T b) { return finish<sat>(a + b); }
};
template <bool sat> struct Sub {
  template <class T> static T run(T a, T b) { return finish<sat>(a - b); }
};
template <bool sat> struct Mul {
  template <class T> static T run(T a, T b) { return finish<sat>(a * b); }
};
template <bool sat> struct Fma {
  static float run(float a, float b, float c) {
    return finish<sat>(__builtin_fmaf(a, b, c));
  }
  static double run(double a, double b, double c) {
    return finish<sat>(__builtin_fma(a, b, c));
  }
};
struct Div {
  template <class T> static T run(T a, T b) { return canonical(a / b); }
};
struct Rcp {
  template <class T> static T run(T a) { return canonical(T(1) / a); }
};
struct Sqrt {
  static float run(float a) { return canonical(__builtin_sqrtf(a)); }
  static double run(double a) { return canonical(__builtin_sqrt(a)); }
};
struct Abs {
  static float run(float a) { return __builtin_fabsf(a); }
  static double run(double a) { return __builtin_fabs(a); }
};
struct Neg {
  template <class T> static T run(T a) { return -a; }
};
struct Min {
  template <class T> static T run(T a, T b) { return leastOf(a, b); }
};
struct Max {
  template <class T> static T run(T a, T b) { return mostOf(a, b); }
};
struct MinNan {
  template <class T> static T run(T a, T b) {
    return a != a || b != b ? canonical(a + b) : leastOf(a, b);
  }
};
struct MaxNan {
  template <class T> static T run(T a, T b) {
    return a != a || b != b ? canonical(a + b) : mostOf(a, b);
  }
};
struct CopySign { // the sign of a, the rest of b
  static uint32_t run(uint32_t a, uint32_t b) {
    return (a & 0x80000000) | (b & 0x7fffffff);
  }
  static uint64_t run(uint64_t a, uint64_t b) {
    return (a & (1ull << 63)) | (b & ~(1ull << 63));
  }
};

template <class F> Handler two(bool f32) {
  return f32 ? binary<F, float> : binary<F, double>;
}
template <class F> Handler one(bool f32) {
  return f32 ? unary<F, float> : unary<F, double>;
}

enum Test : uint8_t { Finite, Infinite, Number, NotNumber, Normal, Subnormal };
template <class T> Flow testp(Warp &w, const Op &op, uint32_t mask) {
  const T *a = w.in<T>(op.a);
  setPred(w, op.d, mask, bitsWhere([&](int i) {
            int kind = std::fpclassify(a[i]);
            switch (op.mode) {
            case Finite:
              return kind != FP_NAN && kind != FP_INFINITE;
            case Infinite:
              return kind == FP_INFINITE;
            case Number:
              return kind != FP_NAN;
            case NotNumber:
              return kind == FP_NAN;
            case Normal:
              return kind == FP_NORMAL;
            default:
              return kind == FP_SUBNORMAL;
            }
          }));
  return Flow::Next;
}

} // namespace

bool buildFloat(Builder &b, const Statement &s, Op &op) {
  Ty type = typeOf(s.parts.back());
  if (type != Ty::F32 && type != Ty::F64)
    return false;
  std::string_view name = s.name();
  bool f32 = type == Ty::F32, sat = s.has("sat"), nan = s.has("NaN");
  if (s.has("xorsign"))
    return false;
  int operands = 3;
  Handler run = nullptr;
  if (name == "add") {
    run = sat ? two<Add<true>>(f32) : two<Add<false>>(f32);
  } else if (name == "sub") {
    run = sat ? two<Sub<true>>(f32) : two<Sub<false>>(f32);
  } else if (name == "mul") {
    run = sat ? two<Mul<true>>(f32) : two<Mul<false>>(f32);
  } else if (name == "fma" || name == "mad") {
    operands = 4;
    run = sat   ? ternary<Fma<true>, float>
          : f32 ? ternary<Fma<false>, float>
                : ternary<Fma<false>, double>;
  } else if (name == "div") {
    // .full and .approx: rounded to nearest, which their bounds allow.
    run = two<Div>(f32);
  } else if (name == "min" && s.operands.size() == 3) {
    run = nan ? two<MinNan>(f32) : two<Min>(f32);
  } else if (name == "max" && s.operands.size() == 3) {
    run = nan ? two<MaxNan>(f32) : two<Max>(f32);
  } else if (name == "copysign") {
    run = f32 ? binary<CopySign, uint32_t> : binary<CopySign, uint64_t>;
  } else if (name == "rcp") {
    operands = 2;
    run = one<Rcp>(f32);
  } else if (name == "sqrt") {
    operands = 2;
    run = one<Sqrt>(f32);
  } else if (name == "abs") {
    operands = 2;
    run = one<Abs>(f32);
  } else if (name == "neg") {
    operands = 2;
    run = one<Neg>(f32);
  } else if (name == "testp") {
    b.expectCount(2);
    op.mode = s.has("finite")       ? Finite
              : s.has("infinite")   ? Infinite
              : s.has("number")     ? Number
              : s.has("notanumber") ? NotNumber
              : s.has("normal")     ? Normal
                                    : Subnormal;
    op.d = b.outPred(b.operand(0));
    op.a = b.in(1, type);
    op.run = f32 ? testp<float> : testp<double>;
    return true;
  }
  if (!run)
    return false;
  b.expectCount(operands);
  op.run = run;
  op.a = b.in(1, type);
  if (operands > 2)
    op.b = b.in(2, type);
  if (operands > 3)
    op.c = b.in(3, type);
  op.d = b.out(0, type);
  setMode(s, op);
  return true;
}

} // namespace emu::EMU_LEVEL
