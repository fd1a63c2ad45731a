//===- Attention.cpp - recognise attention in the graph -------------------===//
//
// Follows the def-use chain back from the product of attention weights and
// values. Refuses (with the first reason) a value between that has another
// user, a product without transpose_b, and unequal groups.
//
//===----------------------------------------------------------------------===//
#include "gptc/Stepping/Attention.h"
#include "gptc/Stepping/Elementwise.h"

using namespace mlir;
using namespace gptc;

std::optional<double> gptc::matchScale(Value value, Value &source) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (auto scale = dyn_cast<gpt::ScaleOp>(op)) {
    source = scale.getX();
    // As the op says, rounded to f32 once.
    return static_cast<float>(scale.getFactor().convertToDouble());
  }
  if (isa<arith::MulFOp>(op)) {
    for (int i : {0, 1})
      if (auto factor = splatConstant(op->getOperand(i))) {
        source = op->getOperand(1 - i);
        return factor;
      }
  }
  if (isa<arith::DivFOp>(op))
    if (auto divisor = splatConstant(op->getOperand(1)); divisor && *divisor) {
      source = op->getOperand(0);
      return 1.0 / *divisor;
    }
  return std::nullopt;
}

FailureOr<Attention> gptc::matchAttention(gpt::MatmulOp output, Refuse refuse) {
  Attention result;
  result.output = output;
  result.v = output.getB();
  result.groups = output.getGroups();
  if (output.getTransposeB())
    return refuse(output, "expected values [Sk, D] without transpose_b");

  // Backwards: softmax, masks and scales in any order that means the same.
  Value value = output.getA();
  auto step = [&](Operation *op) -> LogicalResult {
    if (!op->hasOneUse())
      return refuse(op, "expected the only user of this value of attention to "
                        "be the next op of it");
    result.chain.push_back(op);
    return success();
  };
  result.softmax = value.getDefiningOp<gpt::SoftmaxOp>();
  if (!result.softmax)
    return refuse(output, "expected the weights of attention from a softmax");
  if (failed(step(result.softmax)))
    return failure();
  value = result.softmax.getX();

  // A scale between the mask and the softmax leaves -inf as it is, but would
  // scale the numbers of an additive mask.
  while (Operation *op = value.getDefiningOp()) {
    Value source;
    if (auto causal = dyn_cast<gpt::CausalMaskOp>(op)) {
      result.causal = causal;
      source = causal.getS();
    } else if (auto mask = dyn_cast<gpt::MaskOp>(op)) {
      if (result.mask)
        return refuse(mask, "expected at most one mask beside the causal one");
      if (result.scale != 1.0)
        return refuse(mask, "expected the scale before the mask");
      result.mask = mask;
      source = mask.getS();
    } else if (auto factor = matchScale(value, source)) {
      if (!(*factor > 0))
        return refuse(op, "expected a positive scale of attention");
      result.scale *= *factor;
    } else {
      break;
    }
    if (failed(step(op)))
      return failure();
    value = source;
  }

  result.scores = value.getDefiningOp<gpt::MatmulOp>();
  if (!result.scores)
    return refuse(result.softmax, "expected scores from gpt.matmul");
  if (failed(step(result.scores)))
    return failure();
  if (!result.scores.getTransposeB())
    return refuse(result.scores, "expected keys [Sk, D] with transpose_b");
  if (result.scores.getGroups() != result.output.getGroups())
    return refuse(result.output, "expected groups " +
                                     Twine(result.scores.getGroups()) +
                                     " as in the product of q and k, got " +
                                     Twine(result.output.getGroups()));
  result.q = result.scores.getA();
  result.k = result.scores.getB();
  Value source;
  while (result.q.hasOneUse()) {
    auto factor = matchScale(result.q, source);
    if (!factor || !(*factor > 0))
      break;
    result.scale *= *factor;
    result.q = source;
  }
  std::reverse(result.chain.begin(), result.chain.end());
  return result;
}
