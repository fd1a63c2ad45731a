//===- NormKernels.cpp - layer_norm, rms_norm, softmax, log_softmax -------===//
//
// Row by row; threads share the rows of a kernel. Sums run in one vector
// accumulator and a fixed tree, so a row's bits depend on the row alone.
//
//===----------------------------------------------------------------------===//
#include "SimpleKernels.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cpu;

/// Sum over a row of f(x), f masked to zero past its end.
static Value rowSum(Emitter &e, Value n, Value row,
                    function_ref<Value(Value)> f) {
  Type vt = e.vec(e.f32());
  Values r = forColumns(e, n, Values{e.constFp(vt, 0)},
                        [&](Value c, Value mask, ValueRange v) -> Values {
                          Value y = f(loadVector(e, e.elem(row, c), mask));
                          if (mask)
                            y = e.select(mask, y, e.constFp(vt, 0));
                          return {e.fadd(v[0], y)};
                        });
  return e.laneSum(r[0]);
}

/// What a row is multiplied with, of the sum of its squares.
static Value normScale(Emitter &e, const NormRow &norm, Value sum) {
  const bool sample = norm.kind == gpt::NormKind::Sample;
  Value eps = e.constFp(e.f32(), norm.eps);
  Value mean = e.fdiv(sum, e.constFp(e.f32(), norm.size - sample));
  return e.fdiv(e.constFp(e.f32(), 1), sample ? e.fadd(e.fsqrt(mean), eps)
                                              : e.fsqrt(e.fadd(mean, eps)));
}

void gptc::cpu::emitNormRow(Emitter &e, const NormRow &norm, Value row,
                            Value to) {
  const int64_t n = norm.size, lanes = e.target.lanes;
  const bool centered = norm.kind != gpt::NormKind::Rms;
  Value width = e.cst(n), m;
  if (centered)
    m = e.splat(e.fdiv(rowSum(e, width, row, [](Value v) { return v; }),
                       e.constFp(e.f32(), n)),
                lanes);
  auto deviation = [&](Value v) { return centered ? e.fsub(v, m) : v; };
  Value squares = rowSum(e, width, row, [&](Value v) {
    Value d = deviation(v);
    return e.fmul(d, d);
  });
  Value scale = e.splat(normScale(e, norm, squares), lanes);
  forColumns(e, width, [&](Value col, Value mask) {
    Value y = e.fmul(deviation(loadVector(e, e.elem(row, col), mask)), scale);
    Value g = loadVector(e, e.elem(norm.gamma, col), mask);
    y = norm.beta ? e.fma(y, g, loadVector(e, e.elem(norm.beta, col), mask))
                  : e.fmul(y, g);
    storeVector(e, y, e.elem(to, col), mask);
  });
}

static void emitNorm(Emitter &e, KernelContext &c, gpt::NormKind kind,
                     bool hasBeta, double eps) {
  const int64_t n = c.shape(0).back();
  NormRow norm{kind, n, eps, c.arg(e, 1), hasBeta ? c.arg(e, 2) : Value()};
  Value x = c.arg(e, 0), out = c.result(e, 0);
  forShare(e, c, c.rows(e, 0), [&](Value r) {
    Value at = e.mul(r, n);
    emitNormRow(e, norm, e.elem(x, at), e.elem(out, at));
  });
}

void gptc::cpu::emitLayerNorm(Emitter &e, KernelContext &c,
                              gpt::LayerNormOp op) {
  emitNorm(e, c, op.kind(), !!op.getBeta(), op.getEps().convertToDouble());
}

void gptc::cpu::emitRmsNorm(Emitter &e, KernelContext &c, gpt::RmsNormOp op) {
  emitNorm(e, c, gpt::NormKind::Rms, false, op.getEps().convertToDouble());
}

namespace {
/// A row of scores.
struct RowPeak {
  Value hidden;    ///< every score is -inf
  Value reference; ///< the largest, or 0 for a hidden row; a vector of it
};
} // namespace

static RowPeak peakOf(Emitter &e, Value n, Value row) {
  Value none = e.infinity(e.vec(e.f32()), true);
  Values best = forColumns(
      e, n, Values{none}, [&](Value col, Value mask, ValueRange v) -> Values {
        Value s = loadVector(e, e.elem(row, col), mask);
        return {e.fmax(v[0], mask ? e.select(mask, s, none) : s)};
      });
  Value m = e.laneMax(best[0]);
  Value hidden = arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::OEQ, m,
                                       e.infinity(e.f32(), true));
  return {hidden,
          e.splat(e.select(hidden, e.constFp(e.f32(), 0), m), e.target.lanes)};
}

// A row of -inf has maximum -inf; against reference 0 its exponentials are 0
// and so is the result.
void gptc::cpu::emitSoftmax(Emitter &e, KernelContext &c) {
  Value x = c.arg(e, 0), out = c.result(e, 0);
  Value n = c.size(e, 0, c.rank(0) - 1);
  Type vt = e.vec(e.f32());
  forShare(e, c, c.rows(e, 0), [&](Value r) {
    Value row = e.elem(x, e.mul(r, n)), to = e.elem(out, e.mul(r, n));
    RowPeak peak = peakOf(e, n, row);
    Values sum = forColumns(
        e, n, Values{e.constFp(vt, 0)},
        [&](Value col, Value mask, ValueRange v) -> Values {
          Value p = emitExp(
              e, e.fsub(loadVector(e, e.elem(row, col), mask), peak.reference));
          storeVector(e, p, e.elem(to, col), mask);
          return {e.fadd(v[0], mask ? e.select(mask, p, e.constFp(vt, 0)) : p)};
        });
    Value l = e.laneSum(sum[0]);
    Value inverse = e.select(peak.hidden, e.constFp(e.f32(), 0),
                             e.fdiv(e.constFp(e.f32(), 1), l));
    Value f = e.splat(inverse, e.target.lanes);
    forColumns(e, n, [&](Value col, Value mask) {
      Value p = e.elem(to, col);
      storeVector(e, e.fmul(loadVector(e, p, mask), f), p, mask);
    });
  });
}

// Deviations from the largest number are exact or nearly so, and the sum of
// their exponentials is at least 1. A row of -inf stays one: against reference
// 0 the sum is 0, and what is said to be its logarithm is finite.
void gptc::cpu::emitLogSoftmax(Emitter &e, KernelContext &c) {
  Value x = c.arg(e, 0), out = c.result(e, 0);
  Value n = c.size(e, 0, c.rank(0) - 1);
  forShare(e, c, c.rows(e, 0), [&](Value r) {
    Value row = e.elem(x, e.mul(r, n)), to = e.elem(out, e.mul(r, n));
    RowPeak peak = peakOf(e, n, row);
    Value sum = rowSum(e, n, row, [&](Value v) {
      return emitExp(e, e.fsub(v, peak.reference));
    });
    Value logarithm = e.splat(emitLog(e, sum), e.target.lanes);
    forColumns(e, n, [&](Value col, Value mask) {
      Value d = e.fsub(loadVector(e, e.elem(row, col), mask), peak.reference);
      storeVector(e, e.fsub(d, logarithm), e.elem(to, col), mask);
    });
  });
}
