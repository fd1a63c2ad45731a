//===- SimpleKernels.cpp - dispatch, and what the simple kernels share ----===//
#include "SimpleKernels.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cpu;

Values
gptc::cpu::forColumns(Emitter &e, Value n, ValueRange inits,
                      function_ref<Values(Value, Value, ValueRange)> body) {
  const int64_t lanes = e.target.lanes;
  Value full = e.mul(e.div(n, lanes), lanes);
  Values r = e.loop(e.cst(0), full, lanes, inits,
                    [&](Value c, ValueRange v) { return body(c, {}, v); });
  APInt size;
  if (matchPattern(n, m_ConstantInt(&size)) && size.getSExtValue() % lanes == 0)
    return r;
  SmallVector<Type> types(ValueRange(r).getTypes());
  return e.ifElse(
      e.lt(full, n), types,
      [&] { return body(full, e.firstLanes(e.sub(n, full), lanes), r); },
      [&] { return r; });
}

void gptc::cpu::forColumns(Emitter &e, Value n,
                           function_ref<void(Value, Value)> body) {
  forColumns(e, n, {}, [&](Value c, Value mask, ValueRange) {
    body(c, mask);
    return Values();
  });
}

Value gptc::cpu::loadVector(Emitter &e, Value p, Value mask) {
  return mask ? e.loadMasked(e.vec(e.f32()), p, mask)
              : e.load(e.vec(e.f32()), p);
}

void gptc::cpu::storeVector(Emitter &e, Value v, Value p, Value mask) {
  if (mask)
    e.storeMasked(v, p, mask);
  else
    e.store(v, p);
}

Value gptc::cpu::loadWords(Emitter &e, Type element, Value p, Value mask) {
  VectorType type = e.vec(element.isF32() ? e.f32() : e.i32());
  Value v = mask ? e.loadMasked(type, p, mask) : e.load(type, p);
  if (!element.isInteger(1))
    return v;
  return arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::ne, v,
                               e.constInt(type, 0));
}

Value gptc::cpu::loadWord(Emitter &e, Type element, Value p) {
  Value v = e.load(element.isF32() ? e.f32() : e.i32(), p);
  if (!element.isInteger(1))
    return v;
  return arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::ne, v,
                               e.constInt(e.i32(), 0));
}

void gptc::cpu::storeWords(Emitter &e, Value v, Value p, Value mask) {
  if (getElementTypeOrSelf(v.getType()).isInteger(1))
    v = arith::ExtUIOp::create(e.b, e.loc, e.vec(e.i32()), v);
  storeVector(e, v, p, mask);
}

Value gptc::cpu::loadIndex(Emitter &e, Value base, Value index) {
  return arith::ExtSIOp::create(e.b, e.loc, e.i64(),
                                e.load(e.i32(), e.elem(base, index)));
}

void gptc::cpu::forShare(Emitter &e, KernelContext &c, Value n,
                         function_ref<void(Value)> body) {
  auto [from, to] = c.share(e, n);
  e.loop(from, to, 1, body);
}

// Elementwise ops: operands shaped like the result, or splat constants.
LogicalResult gptc::cpu::emitMap(Emitter &e, KernelContext &c, Operation *op) {
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!type || op->getNumResults() != 1)
    return op->emitOpError("has no code for the CPU target");
  for (Value v : op->getOperands()) {
    auto arg = dyn_cast<BlockArgument>(v);
    if (!arg && !v.getDefiningOp<arith::ConstantOp>())
      return op->emitOpError("expected operands that are tensors of the "
                             "result's shape or splat constants");
    if (arg && c.storage(arg.getArgNumber()))
      return op->emitOpError(
          "expected activations, got a stored weight: matrices are packed for "
          "linear and embedding only");
  }
  // Elements of a work unit: a multiple of every vector length, four pages.
  const int64_t chunk = 1024;
  Value n = c.rows(
      e, op->getNumOperands() ? c.kernel.getArgumentTypes().size() : 0, 0);
  LogicalResult ok = success();
  forShare(e, c, e.ceilDiv(n, chunk), [&](Value unit) {
    Value base = e.mul(unit, chunk);
    forColumns(
        e, e.min(e.sub(n, base), e.cst(chunk)), [&](Value column, Value mask) {
          Value at = e.add(base, column);
          Values in;
          for (Value v : op->getOperands()) {
            if (auto arg = dyn_cast<BlockArgument>(v))
              in.push_back(loadWords(e, getElementTypeOrSelf(v.getType()),
                                     e.elem(c.arg(e, arg.getArgNumber()), at),
                                     mask));
            else if (Value k = emitElementwise(e, v.getDefiningOp(), {}))
              in.push_back(e.splat(k, e.target.lanes));
            else
              ok = failure();
          }
          Value y = failed(ok) ? Value() : emitElementwise(e, op, in);
          if (!y)
            ok = failure();
          else
            storeWords(e, y, e.elem(c.result(e, 0), at), mask);
        });
  });
  return ok;
}

LogicalResult gptc::cpu::emitSimple(Emitter &e, KernelContext &c,
                                    Operation *op) {
  LogicalResult ok = success();
  TypeSwitch<Operation *>(op)
      .Case([&](gpt::LayerNormOp o) { emitLayerNorm(e, c, o); })
      .Case([&](gpt::RmsNormOp o) { emitRmsNorm(e, c, o); })
      .Case([&](gpt::SoftmaxOp) { emitSoftmax(e, c); })
      .Case([&](gpt::LogSoftmaxOp) { emitLogSoftmax(e, c); })
      .Case([&](gpt::ArgmaxOp) { emitArgmax(e, c); })
      .Case([&](gpt::MergeArgmaxOp) { emitMergeArgmax(e, c); })
      .Case([&](gpt::CausalMaskOp o) { emitCausalMask(e, c, o); })
      .Case([&](gpt::AlibiOp o) { emitAlibi(e, c, o); })
      .Case([&](gpt::MaskOp o) { emitMask(e, c, o); })
      .Case([&](gpt::BroadcastOp o) { emitBroadcast(e, c, o); })
      .Case([&](tensor::ExpandShapeOp) { emitExpandShape(e, c); })
      .Case([&](gpt::MatmulOp o) { emitMatmul(e, c, o); })
      .Case([&](gpt::RopeTableOp o) { emitRopeTable(e, c, o); })
      .Case([&](gpt::RotateOp o) { emitRotate(e, c, o); })
      .Case([&](gpt::EmbeddingOp o) { emitEmbedding(e, c, o); })
      .Case([&](gpt::SelectRowsOp) { emitSelectRows(e, c); })
      .Case([&](gpt::PositionsOp) { emitPositions(e, c); })
      .Case([&](gpt::SplitOp o) { emitSplit(e, c, o); })
      .Case([&](gpt::SplitHeadsOp) { emitSplitHeads(e, c); })
      .Case([&](gpt::MergeHeadsOp) { emitMergeHeads(e, c); })
      .Case([&](gpt::KVAppendOp o) { emitKVAppend(e, c, o); })
      .Case([&](gpt::KVReadOp o) { emitKVRead(e, c, o); })
      .Default([&](Operation *o) { ok = emitMap(e, c, o); });
  return ok;
}
