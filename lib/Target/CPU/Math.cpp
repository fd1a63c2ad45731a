//===- Math.cpp - exp, log, tanh, erf, GELU, SiLU, sine as polynomials ----===//
//
// One formula for vector bodies and scalar tails, so a value's bits never
// depend on where it stands. Errors are relative unless said otherwise and
// hold for every finite f32 input; NaN in gives NaN out.
//
//===----------------------------------------------------------------------===//
#include "Emitter.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cpu;

static Value konst(Emitter &e, Value like, double v) {
  return e.constFp(
      e.sameShape(like, cast<FloatType>(getElementTypeOrSelf(like))), v);
}

static Value horner(Emitter &e, Value x, ArrayRef<double> c) {
  Value p = konst(e, x, c[0]);
  for (double k : c.drop_front())
    p = e.fma(p, x, konst(e, x, k));
  return p;
}

// exp(x) = 2^n exp(r), n = round(x / ln 2), |r| <= ln2/2; exp(r) by its Taylor
// polynomial of degree 7 (remainder 2e-9). Error below 1.2e-7 (one ulp). 0
// below -87.33 (no denormals), +inf above 88.72.
Value gptc::cpu::emitExp(Emitter &e, Value x) {
  Type ft = x.getType(), it = e.sameShape(x, e.i32());
  // 1.5 * 2^23: adding it rounds to an integer in the low mantissa bits.
  const double shifter = 12582912.0;
  Value t = e.fma(x, konst(e, x, 1.44269504088896341), konst(e, x, shifter));
  Value n = e.fsub(t, konst(e, x, shifter));
  Value r = e.fma(n, konst(e, x, -0.693145751953125),
                  x); // ln 2 in two parts, the first exact in 15 bits
  r = e.fma(n, konst(e, x, -1.42860682030941723212e-6), r);
  Value p = horner(
      e, r,
      {1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5, 1.0, 1.0});
  // p * 2^n in two steps (n can be 128, whose power alone is infinite).
  Value bits = arith::BitcastOp::create(e.b, e.loc, it, t);
  Value k = arith::SubIOp::create(e.b, e.loc, bits, e.constInt(it, 0x4B400000));
  Value shifted = arith::ShLIOp::create(e.b, e.loc, k, e.constInt(it, 23));
  Value pb = arith::BitcastOp::create(e.b, e.loc, it, p);
  Value y = arith::BitcastOp::create(
      e.b, e.loc, ft, Value(arith::AddIOp::create(e.b, e.loc, pb, shifted)));
  y = e.select(e.flt(x, konst(e, x, -87.33)), konst(e, x, 0.0), y);
  y = e.select(e.flt(konst(e, x, 88.72), x), e.infinity(ft, false), y);
  Value nan =
      arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::UNO, x, x);
  return e.select(nan, x, y);
}

// 2^x = 2^n 2^r, n = round(x), |r| <= 1/2; 2^r by the polynomial of degree 5
// with least relative error (9.2e-8) of those with 1 at 0. Error below 1.6e-7
// before the last rounding; 2^0 is 1. 0 from -126.5 down.
Value gptc::cpu::emitExp2(Emitter &e, Value x) {
  Type it = e.sameShape(x, e.i32());
  // 1.5 * 2^23 rounds to an integer in the low mantissa bits, and 127 more makes
  // them the exponent of 2^n: none, which is 0, of n = -127.
  const double shifter = 12582912.0 + 127.0;
  x = e.fmax(konst(e, x, -127), x); // a NaN stays
  Value t = e.fadd(x, konst(e, x, shifter));
  Value r = e.fsub(x, e.fsub(t, konst(e, x, shifter)));
  Value p = horner(e, r,
                   {0.0013264727123574495, 0.009671512644830165,
                    0.055507337434971854, 0.24022242085262202,
                    0.6931469775989941, 1.0});
  Value bits = arith::BitcastOp::create(e.b, e.loc, it, t);
  Value power = arith::ShLIOp::create(e.b, e.loc, bits, e.constInt(it, 23));
  return e.fmul(
      p, arith::BitcastOp::create(e.b, e.loc, x.getType(), power));
}

// log(x) = n ln 2 + log(m), x = 2^n m, m in [sqrt(1/2), sqrt(2)); with
// s = (m - 1) / (m + 1), |s| <= 0.172, log(m) = 2 atanh(s) by its Taylor
// polynomial of degree 9 (remainder 1e-9 of it). Error below 1.8e-7. +inf and
// NaN stay; 0 gives -88; x is a normal number or 0, not below.
Value gptc::cpu::emitLog(Emitter &e, Value x) {
  Type it = e.sameShape(x, e.i32());
  auto integer = [&](int64_t v) { return e.constInt(it, v); };
  Value bits = arith::BitcastOp::create(e.b, e.loc, it, x);
  // From the bits of sqrt(1/2) on, the exponent counts in steps of m's range.
  const int64_t root = 0x3F3504F3;
  Value above = arith::SubIOp::create(e.b, e.loc, bits, integer(root));
  Value n = arith::ShRSIOp::create(e.b, e.loc, above, integer(23));
  Value power = arith::ShLIOp::create(e.b, e.loc, n, integer(23));
  Value m = arith::BitcastOp::create(
      e.b, e.loc, x.getType(),
      Value(arith::SubIOp::create(e.b, e.loc, bits, power)));
  Value one = konst(e, x, 1.0);
  Value s = e.fdiv(e.fsub(m, one), e.fadd(m, one)), s2 = e.fmul(s, s);
  Value p = horner(e, s2, {2.0 / 9, 2.0 / 7, 2.0 / 5, 2.0 / 3});
  Value k = arith::SIToFPOp::create(e.b, e.loc, x.getType(), n);
  // ln 2 in two parts, the first exact in 15 bits.
  Value low = e.fma(k, konst(e, x, 1.42860682030941723212e-6),
                    e.fmul(e.fmul(s, s2), p));
  Value y =
      e.fma(k, konst(e, x, 0.693145751953125), e.fma(s, konst(e, x, 2.0), low));
  Value finite = e.flt(x, e.infinity(x.getType(), false));
  return e.select(finite, y, x);
}

// 1 / (1 + exp(-x)) = 1/2 / (1/2 + 2^(n-1) exp(-r)), n = round(-x / ln 2),
// r = x + n ln 2: error below 3e-7, also in the far negative tail, where 2^n
// would leave the range before the result does. exp(-r) by emitExp2's
// polynomial. 0 from -89.07 down.
Value gptc::cpu::emitSigmoid(Emitter &e, Value x) {
  Type it = e.sameShape(x, e.i32());
  // Rounds as in emitExp2, with the exponent of 2^(n-1): 0 for n = -126, and
  // infinity for n = 129. A NaN stays.
  const double shifter = 12582912.0 + 126.0;
  x = e.fmax(konst(e, x, -89.2), x);
  x = e.select(e.flt(konst(e, x, 87.3), x), konst(e, x, 87.3), x);
  Value t =
      e.fma(x, konst(e, x, -1.44269504088896341), konst(e, x, shifter));
  Value n = e.fsub(t, konst(e, x, shifter));
  Value r = e.fma(n, konst(e, x, 0.693145751953125), x);
  r = e.fma(n, konst(e, x, 1.42860682030941723212e-6), r);
  Value p = horner(e, r,
                   {-0.008290314669386541, 0.041897929319224134,
                    -0.16667636195538177, 0.4999914953047222,
                    -0.9999997071892422, 1.0});
  Value bits = arith::BitcastOp::create(e.b, e.loc, it, t);
  Value power = arith::ShLIOp::create(e.b, e.loc, bits, e.constInt(it, 23));
  Value half = konst(e, x, 0.5);
  power = arith::BitcastOp::create(e.b, e.loc, x.getType(), power);
  return e.fdiv(half, e.fma(p, power, half));
}

// 1 - 2 / (exp(2x) + 1); a Taylor polynomial below 0.25, where that would
// cancel. Absolute error below 2e-7.
Value gptc::cpu::emitTanh(Emitter &e, Value x) {
  Value one = konst(e, x, 1.0), two = konst(e, x, 2.0);
  Value big = e.fsub(one, e.fdiv(two, e.fadd(emitExp(e, e.fmul(x, two)), one)));
  Value x2 = e.fmul(x, x);
  Value small = e.fmul(
      x, horner(e, x2, {62.0 / 2835, -17.0 / 315, 2.0 / 15, -1.0 / 3, 1.0}));
  Value isSmall = e.flt(x2, konst(e, x, 0.0625));
  return e.select(isSmall, small, big);
}

// erfc(z), z >= 0: t exp(-z^2 + P(t)), t = 1 / (1 + z/2); Chebyshev fit of
// Press et al., Numerical Recipes, 6.2: 1.2e-7 plus the rounding of the
// exponent (z^2 ulp).
static Value erfc(Emitter &e, Value z) {
  Value one = konst(e, z, 1.0);
  Value t = e.fdiv(one, e.fma(z, konst(e, z, 0.5), one));
  Value p =
      horner(e, t,
             {0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807,
              -0.18628806, 0.09678418, 0.37409196, 1.00002368, -1.26551223});
  return e.fmul(t, emitExp(e, e.fma(e.fneg(z), z, p)));
}

static Value absolute(Emitter &e, Value x) {
  return e.select(e.flt(x, konst(e, x, 0.0)), e.fneg(x), x);
}

// Absolute error below 3e-7; a Taylor polynomial near 0.
Value gptc::cpu::emitErf(Emitter &e, Value x) {
  Value zero = konst(e, x, 0.0), a = absolute(e, x);
  Value tail = e.fsub(konst(e, x, 1.0), erfc(e, a));
  tail = e.select(e.flt(x, zero), e.fneg(tail), tail);
  Value x2 = e.fmul(x, x);
  const double k = 1.1283791670955126; // 2 / sqrt(pi)
  Value small = e.fmul(x, horner(e, x2, {k / 216, -k / 42, k / 10, -k / 3, k}));
  return e.select(e.flt(x2, konst(e, x, 0.0625)), small, tail);
}

Value gptc::cpu::emitGelu(Emitter &e, Value x, gpt::GeluKind kind) {
  // -FLT_MAX instead of -inf, so that x * 0 is -0 there.
  x = e.select(e.flt(x, konst(e, x, -3.4028234663852886e38)),
               konst(e, x, -3.4028234663852886e38), x);
  if (kind == gpt::GeluKind::Quick)
    return e.fmul(x, emitSigmoid(e, e.fmul(x, konst(e, x, 1.702))));
  if (kind == gpt::GeluKind::Tanh) {
    // (1 + tanh u) / 2 = sigmoid(2u) keeps the negative tail's relative
    // accuracy.
    Value x2 = e.fmul(x, x);
    const double c = 1.5957691216057308; // 2 sqrt(2 / pi)
    Value u = e.fmul(x, e.fma(x2, konst(e, x, 0.044715 * c), konst(e, x, c)));
    return e.fmul(x, emitSigmoid(e, u));
  }
  Value half = konst(e, x, 0.5);
  Value tail = e.fmul(
      half, erfc(e, e.fmul(absolute(e, x), konst(e, x, 0.70710678118654752))));
  Value phi = e.select(e.flt(x, konst(e, x, 0.0)), tail,
                       e.fsub(konst(e, x, 1.0), tail));
  return e.fmul(x, phi);
}

Value gptc::cpu::emitSilu(Emitter &e, Value x) {
  x = e.select(e.flt(x, konst(e, x, -3.4028234663852886e38)),
               konst(e, x, -3.4028234663852886e38), x);
  return e.fmul(x, emitSigmoid(e, x));
}

// -cap at -inf. Absolute error below 3e-7 of the cap.
Value gptc::cpu::emitSoftcap(Emitter &e, Value x, double cap) {
  Value c = konst(e, x, cap);
  return e.fmul(c, emitTanh(e, e.fdiv(x, c)));
}

// Argument reduced by pi/2 in three parts (Cody and Waite; exact products for
// |n| < 2^20), then Taylor polynomials on |r| <= pi/4: absolute error below
// 1e-15.
std::pair<Value, Value> gptc::cpu::emitSinCos(Emitter &e, Value x) {
  Type it = e.sameShape(x, e.i64()), ft = x.getType();
  const double shifter = 6755399441055744.0; // 1.5 * 2^52
  Value t = e.fma(x, konst(e, x, 0.63661977236758134308), konst(e, x, shifter));
  Value n = e.fsub(t, konst(e, x, shifter));
  Value r = e.fma(n, konst(e, x, -1.57079632673412561417), x);
  r = e.fma(n, konst(e, x, -6.07710050630396597660e-11), r);
  r = e.fma(n, konst(e, x, -2.02226624879595063154e-21), r);
  Value r2 = e.fmul(r, r);
  double s[8], c[9], f = 1;
  for (int i = 0, k = 1; i < 8; ++i, k += 2) { // 1/1!, -1/3!, ...
    s[7 - i] = (i % 2 ? -1 : 1) / f;
    f *= (k + 1) * (k + 2);
  }
  f = 1;
  for (int i = 0, k = 0; i < 9; ++i, k += 2) {
    c[8 - i] = (i % 2 ? -1 : 1) / f;
    f *= (k + 1) * (k + 2);
  }
  Value sine = e.fmul(r, horner(e, r2, s)), cosine = horner(e, r2, c);
  Value q = arith::BitcastOp::create(e.b, e.loc, it, t);
  auto bit = [&](Value v, int64_t mask) {
    Value m = arith::AndIOp::create(e.b, e.loc, v, e.constInt(it, mask));
    return Value(arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::ne, m,
                                       e.constInt(it, 0)));
  };
  Value swap = bit(q, 1), negSin = bit(q, 2);
  Value negCos =
      bit(arith::AddIOp::create(e.b, e.loc, q, e.constInt(it, 1)), 2);
  Value sv = e.select(swap, cosine, sine), cv = e.select(swap, sine, cosine);
  sv = e.select(negSin, e.fneg(sv), sv);
  cv = e.select(negCos, e.fneg(cv), cv);
  (void)ft;
  return {sv, cv};
}

Value gptc::cpu::emitElementwise(Emitter &e, Operation *op, ValueRange in) {
  return TypeSwitch<Operation *, Value>(op)
      .Case([&](arith::AddFOp) { return e.fadd(in[0], in[1]); })
      .Case([&](arith::SubFOp) { return e.fsub(in[0], in[1]); })
      .Case([&](arith::MulFOp) { return e.fmul(in[0], in[1]); })
      .Case([&](arith::DivFOp) { return e.fdiv(in[0], in[1]); })
      .Case([&](arith::NegFOp) { return e.fneg(in[0]); })
      .Case([&](arith::MaximumFOp) {
        Value nan = arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::UNO,
                                          in[0], in[0]);
        return e.select(nan, in[0],
                        e.select(e.flt(in[1], in[0]), in[0], in[1]));
      })
      .Case([&](arith::MinimumFOp) {
        Value nan = arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::UNO,
                                          in[0], in[0]);
        return e.select(nan, in[0],
                        e.select(e.flt(in[0], in[1]), in[0], in[1]));
      })
      .Case([&](math::FmaOp) { return e.fma(in[0], in[1], in[2]); })
      .Case([&](math::ExpOp) { return emitExp(e, in[0]); })
      .Case([&](math::TanhOp) { return emitTanh(e, in[0]); })
      .Case([&](math::ErfOp) { return emitErf(e, in[0]); })
      .Case([&](math::SqrtOp) { return e.fsqrt(in[0]); })
      .Case([&](math::RsqrtOp) {
        return e.fdiv(konst(e, in[0], 1.0), e.fsqrt(in[0]));
      })
      .Case([&](math::AbsFOp) { return absolute(e, in[0]); })
      .Case([&](gpt::GeluOp g) { return emitGelu(e, in[0], g.getKind()); })
      .Case([&](gpt::SiluOp) { return emitSilu(e, in[0]); })
      .Case([&](gpt::SoftcapOp s) {
        return emitSoftcap(e, in[0], s.getCap().convertToDouble());
      })
      .Case([&](arith::CmpFOp op) {
        return Value(
            arith::CmpFOp::create(e.b, e.loc, op.getPredicate(), in[0], in[1]));
      })
      .Case([&](arith::CmpIOp op) {
        return Value(
            arith::CmpIOp::create(e.b, e.loc, op.getPredicate(), in[0], in[1]));
      })
      .Case([&](arith::AddIOp) {
        return Value(arith::AddIOp::create(e.b, e.loc, in[0], in[1]));
      })
      .Case([&](arith::SubIOp) {
        return Value(arith::SubIOp::create(e.b, e.loc, in[0], in[1]));
      })
      .Case([&](arith::SelectOp) { return e.select(in[0], in[1], in[2]); })
      .Case([&](arith::AndIOp) {
        return Value(arith::AndIOp::create(e.b, e.loc, in[0], in[1]));
      })
      .Case([&](arith::OrIOp) {
        return Value(arith::OrIOp::create(e.b, e.loc, in[0], in[1]));
      })
      .Case([&](arith::XOrIOp) {
        return Value(arith::XOrIOp::create(e.b, e.loc, in[0], in[1]));
      })
      .Case([&](gpt::ScaleOp s) {
        return e.fmul(in[0], konst(e, in[0], s.getFactor().convertToDouble()));
      })
      .Case([&](arith::ConstantOp c) {
        Attribute v = c.getValue();
        if (auto dense = dyn_cast<DenseElementsAttr>(v);
            dense && dense.isSplat())
          v = dense.getSplatValue<Attribute>();
        if (auto i = dyn_cast<IntegerAttr>(v);
            i && (i.getType().isInteger(1) || i.getType().isInteger(32)))
          return e.constInt(i.getType(), i.getType().isInteger(1)
                                             ? i.getValue().getZExtValue()
                                             : i.getValue().getSExtValue());
        auto f = dyn_cast<FloatAttr>(v);
        return f ? e.constFp(e.f32(), f.getValueAsDouble()) : Value();
      })
      .Default([&](Operation *other) {
        other->emitOpError("expected an elementwise op of arith, math or gpt; "
                           "the CPU target has no code for this one");
        return Value();
      });
}
