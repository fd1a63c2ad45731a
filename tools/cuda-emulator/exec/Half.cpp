// Arithmetic of f16 and bf16, alone and in pairs. Sums and products are exact
// in f32 or double and rounded once.
#include "Lanes.h"
#include "Numbers.h"

namespace emu::EMU_LEVEL {

namespace {

struct F16 {
  static float widen(uint16_t x) { return halfToFloat(x); }
  static uint16_t narrow(float x) { return floatToHalf(x); }
  static uint16_t fma(uint16_t a, uint16_t b, uint16_t c) {
    // A double holds all bits of the sum that can matter to an f16.
    return doubleToHalf(double(widen(a)) * widen(b) + widen(c));
  }
};
struct BF16 {
  static float widen(uint16_t x) { return bfloatToFloat(x); }
  static uint16_t narrow(float x) { return floatToBfloat(x); }
  static uint16_t fma(uint16_t a, uint16_t b, uint16_t c) {
    double product = double(widen(a)) * widen(b), term = widen(c);
    double sum = product + term;
    // What the sum lost decides ties: round to odd.
    double back = sum - product;
    double lost = (product - (sum - back)) + (term - back);
    uint64_t bits = std::bit_cast<uint64_t>(sum);
    if (lost != 0 && std::isfinite(sum) && !(bits & 1))
      sum =
          std::bit_cast<double>((lost > 0) == (sum > 0) ? bits + 1 : bits - 1);
    return encode(sum, 8, 7, Rounding::Nearest);
  }
};

template <class T, bool sat, bool relu> uint16_t finish(float x) {
  if (sat)
    x = x > 0 ? (x < 1 ? x : 1.0f) : 0.0f;
  if (relu)
    x = x < 0 ? 0.0f : x;
  return T::narrow(x);
}
template <class T, bool sat> struct Add {
  static uint16_t run(uint16_t a, uint16_t b) {
    return finish<T, sat, false>(T::widen(a) + T::widen(b));
  }
};
template <class T, bool sat> struct Sub {
  static uint16_t run(uint16_t a, uint16_t b) {
    return finish<T, sat, false>(T::widen(a) - T::widen(b));
  }
};
template <class T, bool sat> struct Mul {
  static uint16_t run(uint16_t a, uint16_t b) {
    return finish<T, sat, false>(T::widen(a) * T::widen(b));
  }
};
template <class T, bool sat, bool relu> struct Fma {
  static uint16_t run(uint16_t a, uint16_t b, uint16_t c) {
    uint16_t r = T::fma(a, b, c);
    return sat || relu ? finish<T, sat, relu>(T::widen(r)) : r;
  }
};
template <class T, bool nan> struct Min {
  static uint16_t run(uint16_t a, uint16_t b) {
    float x = T::widen(a), y = T::widen(b);
    return nan && (x != x || y != y) ? halfNan : T::narrow(leastOf(x, y));
  }
};
template <class T, bool nan> struct Max {
  static uint16_t run(uint16_t a, uint16_t b) {
    float x = T::widen(a), y = T::widen(b);
    return nan && (x != x || y != y) ? halfNan : T::narrow(mostOf(x, y));
  }
};
struct Abs {
  static uint16_t run(uint16_t a) { return a & 0x7fff; }
};
struct Neg {
  static uint16_t run(uint16_t a) { return a ^ 0x8000; }
};
template <class T> struct Ex2 {
  static uint16_t run(uint16_t a) { return T::narrow(std::exp2(T::widen(a))); }
};
template <class T> struct Tanh {
  static uint16_t run(uint16_t a) { return T::narrow(std::tanh(T::widen(a))); }
};

using U = uint16_t;
template <class F> Handler one(bool pair) {
  return pair ? unary<F, U, U, 2> : unary<F, U>;
}
template <class F> Handler two(bool pair) {
  return pair ? binary<F, U, U, U, 2> : binary<F, U>;
}
template <class F> Handler three(bool pair) {
  return pair ? ternary<F, U, U, U, U, 2> : ternary<F, U>;
}

template <class T> Handler pick(const Statement &s, bool pair, int &operands) {
  std::string_view name = s.name();
  bool sat = s.has("sat"), nan = s.has("NaN"), relu = s.has("relu");
  operands = 3;
  if (name == "add")
    return sat ? two<Add<T, true>>(pair) : two<Add<T, false>>(pair);
  if (name == "sub")
    return sat ? two<Sub<T, true>>(pair) : two<Sub<T, false>>(pair);
  if (name == "mul")
    return sat ? two<Mul<T, true>>(pair) : two<Mul<T, false>>(pair);
  if (name == "min")
    return nan ? two<Min<T, true>>(pair) : two<Min<T, false>>(pair);
  if (name == "max")
    return nan ? two<Max<T, true>>(pair) : two<Max<T, false>>(pair);
  if (name == "fma") {
    operands = 4;
    return sat    ? three<Fma<T, true, false>>(pair)
           : relu ? three<Fma<T, false, true>>(pair)
                  : three<Fma<T, false, false>>(pair);
  }
  operands = 2;
  if (name == "abs")
    return one<Abs>(pair);
  if (name == "neg")
    return one<Neg>(pair);
  if (name == "ex2")
    return one<Ex2<T>>(pair);
  if (name == "tanh")
    return one<Tanh<T>>(pair);
  return nullptr;
}

} // namespace

bool buildHalf(Builder &b, const Statement &s, Op &op) {
  Ty type = typeOf(s.parts.back());
  bool f16 = type == Ty::F16 || type == Ty::F16x2;
  bool pair = type == Ty::F16x2 || type == Ty::BF16x2;
  if (!f16 && type != Ty::BF16 && type != Ty::BF16x2)
    return false;
  if (s.has("ftz") && s.name() != "ex2")
    return false; // of f16; nvcc writes it only with -ftz for half
  int operands = 0;
  op.run = f16 ? pick<F16>(s, pair, operands) : pick<BF16>(s, pair, operands);
  if (!op.run)
    return false;
  b.expectCount(operands);
  op.a = b.in(1, type);
  if (operands > 2)
    op.b = b.in(2, type);
  if (operands > 3)
    op.c = b.in(3, type);
  op.d = b.out(0, type);
  return true;
}

} // namespace emu::EMU_LEVEL
