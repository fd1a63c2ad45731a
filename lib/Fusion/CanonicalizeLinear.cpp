//===- CanonicalizeLinear.cpp - one spelling of a bias --------------------===//
//
// Matches:  %y = gpt.linear %x, %w
//           %z = arith.addf %y, (gpt.broadcast %b like %y)      (either side)
// Produces: %z = gpt.linear %x, %w bias %b
//
// Matches:  %q, %k = gpt.split (gpt.linear %x, %w)
//           %z = arith.addf %q, (gpt.broadcast %b like %q)
// Produces: %q = gpt.linear %x, (tensor.extract_slice %w) ; %k = ...
//           and from the first the bias, as above
//
// The same sums in the same order. The bias must be a weight of [N], and the
// linear must have no bias yet and no other user. Packed projections are taken
// apart only where heads follow, since FuseQkv makes one GEMM of them again;
// others keep their one GEMM and the sum after it.
//
//===----------------------------------------------------------------------===//
#include "GemmParts.h"
#include "gptc/Fusion/Passes.h"
#include "gptc/Stepping/Elementwise.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace gptc {
#define GEN_PASS_DEF_CANONICALIZELINEAR
#include "gptc/Fusion/Passes.h.inc"

namespace {
/// A sum with a repeated weight that can be the bias of the linear at `operand`
/// of the sum, or null. Sizes of the linear may be asked for by others.
Value biasOf(arith::AddFOp sum, unsigned operand) {
  Value y = sum->getOperand(operand);
  auto broadcast =
      sum->getOperand(1 - operand).getDefiningOp<gpt::BroadcastOp>();
  if (!broadcast || !isWeight(broadcast.getX()))
    return {};
  auto type = cast<RankedTensorType>(broadcast.getX().getType());
  bool fits = type.getRank() == 1 &&
              type.getDimSize(0) ==
                  cast<RankedTensorType>(y.getType()).getShape().back() &&
              llvm::all_of(y.getUses(), [&](OpOperand &use) {
                return use.getOwner() == sum || isLike(use);
              });
  return fits ? broadcast.getX() : Value();
}

struct BiasPattern : OpRewritePattern<arith::AddFOp> {
  BiasPattern(MLIRContext *context, Pass::Statistic &numChanged)
      : OpRewritePattern(context), numChanged(numChanged) {}

  LogicalResult matchAndRewrite(arith::AddFOp op,
                                PatternRewriter &rewriter) const override {
    for (unsigned i : {0u, 1u}) {
      auto linear = op->getOperand(i).getDefiningOp<gpt::LinearOp>();
      Value bias = linear && !linear.getBias() ? biasOf(op, i) : Value();
      if (!bias || !canHoist(bias, linear))
        continue;
      ++numChanged;
      hoist(rewriter, bias, linear);
      rewriter.setInsertionPoint(linear);
      auto made = gpt::LinearOp::create(
          rewriter,
          fusedPlaces(op.getContext(), {linear.getLoc(), op.getLoc()}),
          op.getType(), linear.getX(), linear.getWeight(), bias,
          linear.getInOutAttr());
      rewriter.replaceOp(op, made);
      rewriter.replaceOp(linear, made);
      return success();
    }
    return rewriter.notifyMatchFailure(
        op, "expected a linear without a bias and a repeated weight");
  }

  Pass::Statistic &numChanged;
};

struct SplitBiasPattern : OpRewritePattern<gpt::SplitOp> {
  SplitBiasPattern(MLIRContext *context, Pass::Statistic &numChanged)
      : OpRewritePattern(context), numChanged(numChanged) {}

  LogicalResult matchAndRewrite(gpt::SplitOp op,
                                PatternRewriter &rewriter) const override {
    auto linear = op.getX().getDefiningOp<gpt::LinearOp>();
    if (!linear || !linear->hasOneUse() || linear.getBias() ||
        !isWhole(linear.getWeight()))
      return rewriter.notifyMatchFailure(
          op, "expected the only user of a linear without a bias");
    auto hasBias = [&](Value part) {
      return llvm::any_of(part.getUses(), [&](OpOperand &use) {
        auto sum = dyn_cast<arith::AddFOp>(use.getOwner());
        Value bias = sum ? biasOf(sum, use.getOperandNumber()) : Value();
        return bias && canHoist(bias, linear) &&
               llvm::all_of(sum->getUsers(), llvm::IsaPred<gpt::SplitHeadsOp>);
      });
    };
    if (llvm::none_of(op.getParts(), hasBias))
      return rewriter.notifyMatchFailure(
          op, "expected a part with a bias and heads after it");
    ++numChanged;
    rewriter.setInsertionPoint(op);
    Location loc = fusedPlaces(op.getContext(), {linear.getLoc(), op.getLoc()});
    SmallVector<Value> parts;
    int64_t from = 0;
    for (Value part : op.getParts()) {
      int64_t width = cast<RankedTensorType>(part.getType()).getShape().back();
      GemmWeight weight = partOf(
          rewriter, loc, {linear.getWeight(), Value(), linear.getInOut()},
          {from, width, linear.outFeatures()});
      parts.push_back(gpt::LinearOp::create(rewriter, loc, part.getType(),
                                            linear.getX(), weight.weight,
                                            Value(), linear.getInOutAttr()));
      from += width;
    }
    rewriter.replaceOp(op, parts);
    rewriter.eraseOp(linear);
    return success();
  }

  Pass::Statistic &numChanged;
};

struct CanonicalizeLinear : impl::CanonicalizeLinearBase<CanonicalizeLinear> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<BiasPattern, SplitBiasPattern>(&getContext(), numFused);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
  }
};
} // namespace
} // namespace gptc
