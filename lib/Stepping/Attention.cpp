//===- Attention.cpp - recognise attention in the graph -------------------===//
//
// Follows the def-use chain back from the product of attention weights and
// values to that of queries and keys, then reads it forwards: each op changes
// what is known of a score, or refuses because it would mean something else
// than the fused op's fixed order (scale, softcap, alibi, masks, causal). Masks
// keep their order. The causal one moves behind them: it hides a key whatever
// an additive mask says of it, also NaN and infinity.
//
// Refuses a value between that has another user, a product without
// transpose_b, unequal groups, and numbers that f32 cannot hold.
//
//===----------------------------------------------------------------------===//
#include "gptc/Stepping/Attention.h"
#include "gptc/Stepping/Elementwise.h"
#include <cmath>

using namespace mlir;
using namespace gptc;

std::optional<double> gptc::matchScale(Value value, Value &source) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (auto scale = dyn_cast<gpt::ScaleOp>(op)) {
    source = scale.getX();
    return factorOf(scale);
  }
  if (isa<arith::NegFOp>(op)) {
    source = op->getOperand(0);
    return -1.0;
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

namespace {
class Matcher {
public:
  Matcher(gpt::MatmulOp output, Refuse refuse) : refuse(refuse) {
    result.output = output;
  }
  FailureOr<Attention> run();

private:
  LogicalResult follow();
  LogicalResult visit(Operation *op);
  LogicalResult visitScale(gpt::ScaleOp op);
  LogicalResult visitMask(gpt::MaskOp op);

  /// A score may be -inf already.
  bool hides() const { return result.causal || (boolean && !result.fill); }

  Refuse refuse;
  Attention result;
  bool additive = false, boolean = false; // there is such a mask
};

/// What f32 holds of a number that is not 0.
bool isF32(double value) {
  float rounded = static_cast<float>(value);
  return std::isfinite(rounded) && (rounded != 0 || value == 0);
}
} // namespace

/// Fills the chain from the softmax back to the product of q and k.
LogicalResult Matcher::follow() {
  auto step = [&](Operation *op) -> LogicalResult {
    if (!op->hasOneUse()) {
      for (Operation *user : op->getUsers())
        if (isa<gpt::BroadcastOp>(user) &&
            user->getOperand(0) != op->getResult(0))
          return refuse(user, "expected no sizes taken of the scores but for "
                              "their masks, since fused attention does not "
                              "have the scores; give another value of these "
                              "sizes after 'like'");
      return refuse(op,
                    "expected no user of this value but attention, got " +
                        Twine(std::distance(op->use_begin(), op->use_end())) +
                        " users; scores and weights that are used "
                        "elsewhere must be computed, so attention stays "
                        "as it is written");
    }
    result.chain.push_back(op);
    return success();
  };
  result.softmax = result.output.getA().getDefiningOp<gpt::SoftmaxOp>();
  if (!result.softmax)
    return refuse(result.output, "expected weights from "
                                 "gpt.softmax"); // no candidate
  if (failed(step(result.softmax)))
    return failure();
  Value value = result.softmax.getX();
  while (
      isa_and_nonnull<gpt::ScaleOp, gpt::SoftcapOp, gpt::AlibiOp, gpt::MaskOp,
                      gpt::CausalMaskOp>(value.getDefiningOp())) {
    if (failed(step(value.getDefiningOp())))
      return failure();
    value = value.getDefiningOp()->getOperand(0);
  }
  Operation *op = value.getDefiningOp();
  if (!op)
    return refuse(result.softmax,
                  "expected scores from gpt.matmul, got an argument");
  result.scores = dyn_cast<gpt::MatmulOp>(op);
  if (!result.scores)
    return refuse(op, "expected gpt.matmul, scale, softcap, alibi, mask or "
                      "causal_mask before the softmax, got " +
                          op->getName().getStringRef() +
                          "; additive masks are arith.addf or gpt.mask, "
                          "boolean ones gpt.mask or arith.select with a "
                          "constant, runtime scales stand at the product");
  if (failed(step(op)))
    return failure();
  std::reverse(result.chain.begin(), result.chain.end());
  return success();
}

LogicalResult Matcher::visitScale(gpt::ScaleOp op) {
  double factor = factorOf(op);
  if (additive)
    return refuse(op, "expected the scale before the additive mask, whose "
                      "numbers it would change; scale the product of queries "
                      "and keys, or scale the mask by itself");
  if (hides() && !(factor > 0))
    return refuse(op, "expected a scale above 0 past the mask, since -inf "
                      "times " +
                          Twine(std::to_string(factor)) +
                          " is no hidden score; scale the product of queries "
                          "and keys");
  if (result.softcap && factor == 0)
    return refuse(op, "expected a scale other than 0 past the softcap");
  // factor * cap * tanh(x / cap), and tanh is odd.
  result.scale *= factor;
  bool held = isF32(result.scale);
  for (double &slope : result.slopes)
    held &= isF32(slope *= factor) && gpt::isAlibiSlope(slope);
  if (result.softcap)
    held &= gpt::isDivisor(*result.softcap *= std::fabs(factor));
  if (result.fill)
    held &= isF32(*result.fill *= factor);
  if (!held)
    return refuse(op, "expected scales whose product is a number of f32");
  return success();
}

LogicalResult Matcher::visitMask(gpt::MaskOp op) {
  result.masks.push_back(op);
  if (getElementTypeOrSelf(op.getMask().getType()).isF32()) {
    additive = true;
    return success();
  }
  std::optional<double> fill;
  if (auto given = op.getFill())
    if (float value = given->convertToDouble(); std::isfinite(value))
      fill = value;
  if (result.causal && fill)
    return refuse(op, "expected a mask that fills with a finite number before "
                      "gpt.causal_mask: it would bring later keys back");
  auto rounded = [](std::optional<double> number) {
    return number ? static_cast<float>(*number) : -HUGE_VALF;
  };
  if (boolean && rounded(fill) != rounded(result.fill))
    return refuse(op, "expected boolean masks that fill alike, as the one fill "
                      "of fused attention; give all of them the same number");
  boolean = true;
  result.fill = fill;
  return success();
}

LogicalResult Matcher::visit(Operation *op) {
  if (auto scale = dyn_cast<gpt::ScaleOp>(op))
    return visitScale(scale);
  if (auto mask = dyn_cast<gpt::MaskOp>(op))
    return visitMask(mask);
  if (auto softcap = dyn_cast<gpt::SoftcapOp>(op)) {
    if (!result.masks.empty() || result.causal)
      return refuse(op, "expected the softcap before the mask: it would turn "
                        "-inf into -cap, which is not hidden");
    if (result.softcap || !result.slopes.empty())
      return refuse(op, "expected one softcap, before alibi");
    result.softcap = softcap.getCap().convertToDouble();
  } else if (auto alibi = dyn_cast<gpt::AlibiOp>(op)) {
    if (!result.slopes.empty())
      return refuse(op, "expected one alibi; add the slopes of both");
    if (result.fill)
      return refuse(op, "expected alibi before a mask that fills with a "
                        "finite number, which it would change");
    for (double slope : alibi.getSlopes())
      result.slopes.push_back(static_cast<float>(slope));
  } else if (auto causal = dyn_cast<gpt::CausalMaskOp>(op)) {
    result.causal = true;
    if (auto window = causal.getWindow())
      result.window = std::min<int64_t>(result.window.value_or(INT64_MAX),
                                        static_cast<int64_t>(*window));
  }
  return success();
}

FailureOr<Attention> Matcher::run() {
  gpt::MatmulOp output = result.output;
  result.v = output.getB();
  result.groups = output.getGroups();
  if (output.getTransposeB())
    return refuse(output, "expected values [..., Sk, D] without transpose_b");
  if (failed(follow()))
    return failure();
  if (!result.scores.getTransposeB())
    return refuse(result.scores, "expected keys [..., Sk, D] with transpose_b");
  if (result.scores.getGroups() != output.getGroups())
    return refuse(output, "expected groups " +
                              Twine(result.scores.getGroups()) +
                              " as in the product of queries and keys, got " +
                              Twine(output.getGroups()));
  result.q = result.scores.getA();
  result.k = result.scores.getB();
  for (Operation *op : result.chain)
    if (failed(visit(op)))
      return failure();
  // Several factors are rounded once, as one would be.
  result.scale = static_cast<float>(result.scale);
  return std::move(result);
}

FailureOr<Attention> gptc::matchAttention(gpt::MatmulOp output, Refuse refuse) {
  return Matcher(output, refuse).run();
}
