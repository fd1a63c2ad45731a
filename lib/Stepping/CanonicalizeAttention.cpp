//===- CanonicalizeAttention.cpp - one spelling of attention --------------===//
//
// Matches:  %q2 = arith.mulf %q, splat 0.5         (below rope, split_heads
// too)
//           %s = gpt.matmul %q2, %k transpose_b
//           %t = arith.divf %s, splat 4.0
//           %b = arith.subf %t, (gpt.broadcast %bias)
//           %m = arith.select %visible, %b, splat -inf
//           %n = gpt.mask %m, %padding
//           %p = gpt.softmax %n
// Produces: %s = gpt.matmul %q, %k transpose_b
//           %t = gpt.scale %s by 0.125
//           %b = gpt.mask %t, (arith.negf %bias)
//           %m = gpt.mask %b, %visible
//           %n = gpt.mask %m, %padding
//           %p = gpt.softmax %n
//
// A mask that is constant or compares positions becomes gpt.causal_mask if that
// is what it says (SimplifyMasks.cpp); one that is computed along the scores is
// computed along its own dimensions (NarrowMask.cpp).
//
// Changes only ops on the way from a product with transpose_b to a softmax that
// have no other user, and what scales q and k. Numbers change by rounding at
// most: moving a factor that is a power of two keeps every bit, another one
// moves one rounding; x / c becomes x * (1 / c). A runtime factor moves from
// the scores to q, where there are fewer numbers.
//
//===----------------------------------------------------------------------===//
#include "Masks.h"
#include "gptc/Stepping/Attention.h"
#include "gptc/Stepping/Elementwise.h"
#include "gptc/Stepping/Passes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"
#include <cmath>

using namespace mlir;

namespace gptc {
#define GEN_PASS_DEF_CANONICALIZEATTENTION
#include "gptc/Stepping/Passes.h.inc"

namespace {
/// Whether one use, no more, needs the numbers of `op`: not only its sizes.
bool hasOneUser(Operation *op) {
  return op->getNumResults() == 1 &&
         llvm::count_if(op->getUses(),
                        [](OpOperand &use) { return !isLike(use); }) == 1;
}

/// The operand of `op` through which scores come, if it is an op that may
/// stand between the product and the softmax: nothing for others.
SmallVector<unsigned, 2> scoreOperands(Operation *op) {
  if (isa<gpt::ScaleOp, gpt::SoftcapOp, gpt::AlibiOp, gpt::MaskOp,
          gpt::CausalMaskOp, arith::NegFOp, math::TanhOp, arith::DivFOp,
          arith::SubFOp>(op))
    return {0};
  if (isa<arith::MulFOp, arith::AddFOp>(op))
    return {0, 1};
  if (isa<arith::SelectOp>(op))
    return {1, 2};
  return {};
}

/// The way from a softmax back to the product of q and k, outermost first.
struct Way {
  SmallVector<std::pair<Operation *, unsigned>> steps; // op, operand of scores
  gpt::MatmulOp scores;
};

/// Whether scores reach `value`, every value on the way having one user.
bool findWay(Value value, Way &way) {
  Operation *op = value.getDefiningOp();
  if (!op || !hasOneUser(op) || way.steps.size() > 32)
    return false;
  if (auto matmul = dyn_cast<gpt::MatmulOp>(op)) {
    way.scores = matmul;
    return matmul.getTransposeB();
  }
  for (unsigned i : scoreOperands(op)) {
    // The other operand of a sum or product is a mask or a factor.
    way.steps.emplace_back(op, i);
    if (findWay(op->getOperand(i), way))
      return true;
    way.steps.pop_back();
  }
  return false;
}

/// Whether each query has one number of `factor`, so that it may scale q.
bool isPerQuery(Value factor, Value q) {
  auto type = cast<RankedTensorType>(factor.getType());
  return type.getRank() == 0 ||
         (type.getShape().back() == 1 &&
          type.getRank() <= cast<RankedTensorType>(q.getType()).getRank());
}

class Canonicalizer {
public:
  Canonicalizer(MLIRContext *context, Pass::Statistic &numChanged)
      : rewriter(context), numChanged(numChanged) {}

  void run(gpt::SoftmaxOp softmax);

private:
  void hoistScales(gpt::MatmulOp scores);
  void replaceDims(Value scores, gpt::MatmulOp product);
  Value withoutScale(Value value, double &factor);
  Operation *visit(Operation *op, unsigned operand);
  Value scaled(Location loc, Value x, double factor);
  gpt::ScaleOp makeScale(Location loc, Value x, double factor);
  Value visitScale(Operation *op, Value x, double factor);
  Value visitRuntimeScale(Operation *op, Value x, Value factor);
  Value visitSelect(arith::SelectOp op, Value x, bool inverted);

  IRRewriter rewriter;
  Pass::Statistic &numChanged;
  /// Their factors are not rounded yet: several are, as one is, once.
  llvm::SmallPtrSet<Operation *, 8> ownScales;
};

/// What gpt.scale can say and what does not vanish.
bool isFactor(double factor) {
  float rounded = static_cast<float>(factor);
  return std::isfinite(rounded) && (rounded != 0 || factor == 0);
}
} // namespace

/// x * factor, as one gpt.scale; x itself for a factor of 1.
Value Canonicalizer::scaled(Location loc, Value x, double factor) {
  if (auto inner = x.getDefiningOp<gpt::ScaleOp>();
      inner && hasOneUser(inner)) {
    double both = factor * (ownScales.contains(inner)
                                ? inner.getFactor().convertToDouble()
                                : factorOf(inner));
    if (isFactor(both)) {
      x = inner.getX();
      factor = both;
    }
  }
  if (static_cast<float>(factor) == 1)
    return x;
  return makeScale(loc, x, factor);
}

gpt::ScaleOp Canonicalizer::makeScale(Location loc, Value x, double factor) {
  auto op = gpt::ScaleOp::create(rewriter, loc, x.getType(), x,
                                 rewriter.getF64FloatAttr(factor));
  ownScales.insert(op);
  return op;
}

/// `value` without the constant factors of it, which multiply `factor`. Rotary
/// embeddings and splitting into heads commute with a factor; they are made
/// again if nothing else uses them.
Value Canonicalizer::withoutScale(Value value, double &factor) {
  Value source;
  if (auto found = matchScale(value, source);
      found && isFactor(factor * *found)) {
    factor *= *found;
    return withoutScale(source, factor);
  }
  Operation *op = value.getDefiningOp();
  if (!isa_and_nonnull<gpt::RopeOp, gpt::SplitHeadsOp>(op) || !hasOneUser(op))
    return value;
  Value x = withoutScale(op->getOperand(0), factor);
  if (x == op->getOperand(0))
    return value;
  rewriter.setInsertionPoint(op);
  Operation *made = rewriter.clone(*op);
  made->setOperand(0, x);
  return made->getResult(0);
}

/// The factors of q and k become one of the product.
void Canonicalizer::hoistScales(gpt::MatmulOp scores) {
  double factor = 1;
  Value q = withoutScale(scores.getA(), factor);
  Value k = withoutScale(scores.getB(), factor);
  if (q == scores.getA() && k == scores.getB())
    return;
  ++numChanged;
  rewriter.modifyOpInPlace(scores, [&] {
    scores.getAMutable().assign(q);
    scores.getBMutable().assign(k);
  });
  rewriter.setInsertionPointAfter(scores);
  Value product = scores.getResult();
  gpt::ScaleOp scale = makeScale(scores.getLoc(), product, factor);
  rewriter.replaceAllUsesExcept(product, scale.getResult(), scale);
}

/// Sizes of scores, or of what becomes of them, are those of q and k.
void Canonicalizer::replaceDims(Value scores, gpt::MatmulOp product) {
  int64_t last = cast<RankedTensorType>(scores.getType()).getRank() - 1;
  for (Operation *user : llvm::make_early_inc_range(scores.getUsers())) {
    auto dim = dyn_cast<tensor::DimOp>(user);
    std::optional<int64_t> axis = dim ? dim.getConstantIndex() : std::nullopt;
    if (!axis || *axis < 0 || *axis > last)
      continue;
    rewriter.setInsertionPoint(dim);
    rewriter.replaceOpWithNewOp<tensor::DimOp>(
        dim, *axis == last ? product.getB() : product.getA(),
        *axis == last ? last - 1 : *axis);
  }
}

/// x * factor. Past a softcap the factor becomes one of the cap.
Value Canonicalizer::visitScale(Operation *op, Value x, double factor) {
  auto softcap = x.getDefiningOp<gpt::SoftcapOp>();
  double cap =
      softcap ? softcap.getCap().convertToDouble() * std::fabs(factor) : 0;
  if (!softcap || !gpt::isDivisor(cap))
    return scaled(op->getLoc(), x, factor);
  // factor * cap * tanh(y / cap) = cap' * tanh(factor * y / cap').
  Value y = scaled(op->getLoc(), softcap.getX(), factor);
  // 50 * tanh(x * 0.02), 0.02 as f32 has it.
  if (auto scale = y.getDefiningOp<gpt::ScaleOp>();
      scale && std::fabs(factorOf(scale) - 1) < 0x1p-22)
    y = scale.getX();
  return gpt::SoftcapOp::create(rewriter, op->getLoc(), y.getType(), y,
                                rewriter.getF64FloatAttr(cap));
}

/// A factor of the product, known when running: q takes it.
Value Canonicalizer::visitRuntimeScale(Operation *op, Value x, Value factor) {
  Value product = x;
  while (auto scale = product.getDefiningOp<gpt::ScaleOp>())
    product = scale.getX();
  auto scores = product.getDefiningOp<gpt::MatmulOp>();
  if (!scores || !isPerQuery(factor, scores.getA()))
    return {};
  Value q = scores.getA();
  if (Operation *known = factor.getDefiningOp();
      known && scores->isBeforeInBlock(known)) {
    if (known->getNumOperands())
      return {};
    rewriter.moveOpBefore(known, scores); // a weight or a constant
  }
  rewriter.setInsertionPoint(scores);
  Value wide =
      gpt::BroadcastOp::create(rewriter, op->getLoc(), q.getType(), factor, q);
  Operation *scaledQ = rewriter.create(OperationState(
      op->getLoc(), op->getName(), {q, wide}, {q.getType()}, op->getAttrs()));
  rewriter.modifyOpInPlace(
      scores, [&] { scores.getAMutable().assign(scaledQ->getResult(0)); });
  return x;
}

/// select(condition, x, fill); `inverted` if x is where it is false.
Value Canonicalizer::visitSelect(arith::SelectOp op, Value x, bool inverted) {
  Value condition = narrowMask(rewriter, op.getCondition());
  auto fill = splatConstant(inverted ? op.getTrueValue() : op.getFalseValue());
  auto type = dyn_cast<RankedTensorType>(condition.getType());
  if (!type || !fill || !(*fill < std::numeric_limits<double>::infinity()))
    return {};
  if (inverted) {
    Value all = arith::ConstantOp::create(
        rewriter, op.getLoc(),
        DenseElementsAttr::get(
            type.hasStaticShape()
                ? type
                : RankedTensorType::get({}, type.getElementType()),
            true));
    if (!type.hasStaticShape())
      all =
          gpt::BroadcastOp::create(rewriter, op.getLoc(), type, all, condition);
    condition =
        rewriter.createOrFold<arith::XOrIOp>(op.getLoc(), condition, all);
  }
  FloatAttr attr;
  if (std::isfinite(*fill))
    attr = rewriter.getF64FloatAttr(*fill);
  return gpt::MaskOp::create(rewriter, op.getLoc(), x.getType(), x, condition,
                             attr);
}

/// What the op becomes.
Operation *Canonicalizer::visit(Operation *op, unsigned operand) {
  rewriter.setInsertionPoint(op);
  Value x = op->getOperand(operand), made;
  Value other =
      op->getNumOperands() == 2 ? op->getOperand(1 - operand) : Value();
  Value source;
  if (auto factor = matchScale(op->getResult(0), source);
      factor && source == x && isFactor(*factor)) {
    made = visitScale(op, x, *factor);
    if (auto same = made.getDefiningOp<gpt::ScaleOp>();
        same && isa<gpt::ScaleOp>(op) && same.getX() == x) {
      rewriter.eraseOp(same); // nothing to change
      return op;
    }
  } else if (isa<arith::MulFOp, arith::DivFOp>(op)) {
    Value factor = unbroadcast(other);
    if (factor != other)
      made = visitRuntimeScale(op, x, factor);
  } else if (isa<arith::AddFOp, arith::SubFOp>(op)) {
    Value mask = narrowMask(rewriter, other);
    if (isa<arith::SubFOp>(op))
      mask = rewriter.createOrFold<arith::NegFOp>(op->getLoc(), mask);
    made = gpt::MaskOp::create(rewriter, op->getLoc(), x.getType(), x, mask,
                               FloatAttr());
  } else if (auto select = dyn_cast<arith::SelectOp>(op)) {
    made = visitSelect(select, x, /*inverted=*/operand == 2);
  } else if (auto tanh = dyn_cast<math::TanhOp>(op)) {
    made = gpt::SoftcapOp::create(rewriter, op->getLoc(), x.getType(), x,
                                  rewriter.getF64FloatAttr(1));
  } else if (auto mask = dyn_cast<gpt::MaskOp>(op)) {
    Value narrow = narrowMask(rewriter, mask.getMask());
    if (narrow != mask.getMask()) {
      ++numChanged;
      rewriter.modifyOpInPlace(mask,
                               [&] { mask.getMaskMutable().assign(narrow); });
    }
  }
  if (!made)
    return op;
  ++numChanged;
  rewriter.replaceOp(op, made);
  return made.getDefiningOp();
}

void Canonicalizer::run(gpt::SoftmaxOp softmax) {
  Way way;
  if (!findWay(softmax.getX(), way))
    return;
  hoistScales(way.scores);
  replaceDims(way.scores, way.scores);
  for (auto [op, operand] : way.steps)
    replaceDims(op->getResult(0), way.scores);
  // From the product on, so that an op sees what the ones before became.
  llvm::SetVector<Operation *> masks;
  Operation *last = nullptr;
  for (auto [op, operand] : llvm::reverse(way.steps)) {
    last = visit(op, operand);
    if (isa<gpt::MaskOp, gpt::CausalMaskOp, arith::SelectOp>(last))
      masks.insert(last);
  }
  SmallVector<Operation *> ordered(masks.takeVector());
  numChanged += simplifyMasks(rewriter, ordered,
                              ordered.size() == 1 && ordered.front() == last);
}

namespace {
struct CanonicalizeAttention
    : impl::CanonicalizeAttentionBase<CanonicalizeAttention> {
  void runOnOperation() override {
    llvm::SetVector<Operation *> softmaxes;
    getOperation()->walk([&](gpt::SoftmaxOp op) { softmaxes.insert(op); });
    Canonicalizer canonicalizer(&getContext(), numChanged);
    while (!softmaxes.empty()) {
      auto softmax = cast<gpt::SoftmaxOp>(softmaxes.front());
      softmaxes.erase(softmaxes.begin());
      canonicalizer.run(softmax);
      // What scaled, repeated or filled is dead now; another softmax may be.
      for (Operation &op :
           llvm::make_early_inc_range(llvm::reverse(*softmax->getBlock())))
        if (isOpTriviallyDead(&op)) {
          softmaxes.remove(&op);
          op.erase();
        }
    }
  }
};
} // namespace
} // namespace gptc
