//===- ArgmaxKernels.cpp - argmax, alone and of a GEMM's blocks -----------===//
//
// Row by row; threads share the rows of a kernel.
//
//===----------------------------------------------------------------------===//
#include "Argmax.h"
#include "SimpleKernels.h"
#include <limits>

using namespace mlir;
using namespace gptc;
using namespace gptc::cpu;

namespace {
Value compare(Emitter &e, arith::CmpFPredicate p, Value a, Value b) {
  return arith::CmpFOp::create(e.b, e.loc, p, a, b);
}
Value both(Emitter &e, Value a, Value b) {
  return arith::AndIOp::create(e.b, e.loc, a, b);
}
Value either(Emitter &e, Value a, Value b) {
  return arith::OrIOp::create(e.b, e.loc, a, b);
}
/// a above b.
Value above(Emitter &e, Value a, Value b) {
  return either(e, compare(e, arith::CmpFPredicate::OGT, a, b),
                both(e, compare(e, arith::CmpFPredicate::ORD, a, a),
                     compare(e, arith::CmpFPredicate::UNO, b, b)));
}
} // namespace

LaneBest LaneBest::none(Emitter &e) {
  return {e.constFp(e.vec(e.f32()), std::numeric_limits<double>::quiet_NaN()),
          e.constInt(e.vec(e.i32()), INT32_MAX)};
}

LaneBest LaneBest::with(Emitter &e, Value numbers, Value first,
                        Value mask) const {
  const int64_t lanes = e.target.lanes;
  SmallVector<int32_t> own;
  for (int64_t i = 0; i < lanes; ++i)
    own.push_back(i);
  Value at = arith::AddIOp::create(
      e.b, e.loc,
      arith::ConstantOp::create(
          e.b, e.loc,
          DenseElementsAttr::get(e.vec(e.i32()), ArrayRef<int32_t>(own))),
      e.splat(arith::TruncIOp::create(e.b, e.loc, e.i32(), first), lanes));
  Value isFirst =
      arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::eq, column,
                            e.constInt(column.getType(), INT32_MAX));
  Value better = either(e, above(e, numbers, value), isFirst);
  if (mask)
    better = both(e, better, mask);
  return {e.select(better, numbers, value), e.select(better, at, column)};
}

// Halves are combined until one lane is left. The order is total, so the
// result does not depend on how lanes meet.
LaneBest LaneBest::ofLanes(Emitter &e) const {
  LaneBest best = *this;
  for (int64_t n = e.target.lanes; n > 1; n /= 2) {
    SmallVector<int64_t> lo, hi;
    for (int64_t i = 0; i < n / 2; ++i) {
      lo.push_back(i);
      hi.push_back(n / 2 + i);
    }
    auto half = [&](Value v, ArrayRef<int64_t> lanes) {
      return e.shuffle(v, v, lanes);
    };
    LaneBest a{half(best.value, lo), half(best.column, lo)},
        b{half(best.value, hi), half(best.column, hi)};
    // Neither above: equal, or both NaN.
    Value lower = arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::slt,
                                        b.column, a.column);
    Value notBelow = arith::XOrIOp::create(
        e.b, e.loc, above(e, a.value, b.value), e.constInt(lower.getType(), 1));
    Value better =
        either(e, above(e, b.value, a.value), both(e, notBelow, lower));
    best = {e.select(better, b.value, a.value),
            e.select(better, b.column, a.column)};
  }
  return {e.lane(best.value, 0), e.lane(best.column, 0)};
}

/// The column of the largest of n numbers.
static Value largestIn(Emitter &e, Value row, Value n) {
  LaneBest none = LaneBest::none(e);
  Values best = forColumns(e, n, Values{none.value, none.column},
                           [&](Value col, Value mask, ValueRange v) -> Values {
                             Value y = loadVector(e, e.elem(row, col), mask);
                             LaneBest next =
                                 LaneBest{v[0], v[1]}.with(e, y, col, mask);
                             return {next.value, next.column};
                           });
  return LaneBest{best[0], best[1]}.ofLanes(e).column;
}

void gptc::cpu::emitArgmax(Emitter &e, KernelContext &c) {
  Value x = c.arg(e, 0), out = c.result(e, 0);
  Value n = c.size(e, 0, c.rank(0) - 1);
  forShare(e, c, c.rows(e, 0), [&](Value r) {
    e.store(largestIn(e, e.elem(x, e.mul(r, n)), n), e.elem(out, r));
  });
}

void gptc::cpu::emitMergeArgmax(Emitter &e, KernelContext &c) {
  Value values = c.arg(e, 0), columns = c.arg(e, 1), out = c.result(e, 0);
  Value blocks = c.size(e, 0, 1);
  forShare(e, c, c.rows(e, 0), [&](Value r) {
    Value row = e.mul(r, blocks);
    Value best = arith::ExtSIOp::create(
        e.b, e.loc, e.i64(), largestIn(e, e.elem(values, row), blocks));
    e.store(e.load(e.i32(), e.elem(columns, e.add(row, best))), e.elem(out, r));
  });
}
