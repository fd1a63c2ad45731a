// The approximate functions of f32. They are computed in double and rounded
// once, so they are at least as accurate as the device's; a kernel must not
// count on that. Subnormal results of .ftz forms are flushed.
#include "Environment.h"
#include "Lanes.h"
#include "Numbers.h"

namespace emu::EMU_LEVEL {

namespace {

// 2^x for |x| <= 0.5, with an error of about 1e-13: Taylor's series.
inline double exp2Fraction(double f) {
  double y = f * 0.69314718055994530942, sum = 1.0 / 479001600;
  sum = sum * y + 1.0 / 39916800;
  sum = sum * y + 1.0 / 3628800;
  sum = sum * y + 1.0 / 362880;
  sum = sum * y + 1.0 / 40320;
  sum = sum * y + 1.0 / 5040;
  sum = sum * y + 1.0 / 720;
  sum = sum * y + 1.0 / 120;
  sum = sum * y + 1.0 / 24;
  sum = sum * y + 1.0 / 6;
  sum = sum * y + 0.5;
  sum = sum * y + 1.0;
  return sum * y + 1.0;
}

struct Ex2 {
  static float run(float x) {
    double clamped = x < -200 ? -200.0 : x > 200 ? 200.0 : double(x);
    clamped = x != x ? 0 : clamped;
    double whole = __builtin_rint(clamped);
    double scale = std::bit_cast<double>(uint64_t(int64_t(whole) + 1023) << 52);
    float r = float(exp2Fraction(clamped - whole) * scale);
    return x != x ? std::bit_cast<float>(nanBits) : r;
  }
};
struct Lg2 {
  static float run(float x) { return canonical(float(std::log2(double(x)))); }
};
struct Rsqrt {
  static float run(float x) {
    return canonical(float(1.0 / __builtin_sqrt(double(x))));
  }
};
struct RsqrtDouble {
  static double run(double x) { return canonical(1.0 / __builtin_sqrt(x)); }
};
struct Sin {
  static float run(float x) { return canonical(float(std::sin(double(x)))); }
};
struct Cos {
  static float run(float x) { return canonical(float(std::cos(double(x)))); }
};
struct Tanh {
  static float run(float x) { return canonical(float(std::tanh(double(x)))); }
};

// With flushed arguments and results, in the ordinary environment: the
// functions of the C library are not made for another.
template <class F> struct Flushed {
  static float run(float x) { return flushed(F::run(flushed(x))); }
};
template <class F> Handler pick(const Statement &s) {
  return s.has("ftz") ? unary<Flushed<F>, float> : unary<F, float>;
}

} // namespace

bool buildApprox(Builder &b, const Statement &s, Op &op) {
  std::string_view name = s.name();
  Ty type = typeOf(s.parts.back());
  if (name == "rsqrt" && type == Ty::F64) {
    op.run = unary<RsqrtDouble, double>;
  } else if (type == Ty::F32) {
    op.run = name == "ex2"     ? pick<Ex2>(s)
             : name == "lg2"   ? pick<Lg2>(s)
             : name == "rsqrt" ? pick<Rsqrt>(s)
             : name == "sin"   ? pick<Sin>(s)
             : name == "cos"   ? pick<Cos>(s)
             : name == "tanh"  ? pick<Tanh>(s)
                               : nullptr;
  }
  if (!op.run)
    return false;
  b.expectCount(2);
  op.a = b.in(1, type);
  op.d = b.out(0, type);
  return true;
}

} // namespace emu::EMU_LEVEL
