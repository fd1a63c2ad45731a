//===- CanonicalizeLinear.cpp - one spelling of a bias --------------------===//
//
// Matches:  %y = gpt.linear %x, %w
//           %z = arith.addf %y, (gpt.broadcast %b like %y)      (either side)
// Produces: %z = gpt.linear %x, %w bias %b
//
// The same sums in the same order. The bias must be a weight of [N], and the
// linear must have no bias yet and no other user.
//
//===----------------------------------------------------------------------===//
#include "GemmParts.h"
#include "gptc/Fusion/Passes.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace gptc {
#define GEN_PASS_DEF_CANONICALIZELINEAR
#include "gptc/Fusion/Passes.h.inc"

namespace {
struct BiasPattern : OpRewritePattern<arith::AddFOp> {
  BiasPattern(MLIRContext *context, Pass::Statistic &numChanged)
      : OpRewritePattern(context), numChanged(numChanged) {}

  LogicalResult matchAndRewrite(arith::AddFOp op,
                                PatternRewriter &rewriter) const override {
    for (unsigned i : {0u, 1u}) {
      auto linear = op->getOperand(i).getDefiningOp<gpt::LinearOp>();
      auto broadcast = op->getOperand(1 - i).getDefiningOp<gpt::BroadcastOp>();
      if (!linear || !broadcast || linear.getBias())
        continue;
      Value bias = broadcast.getX();
      auto type = cast<RankedTensorType>(bias.getType());
      if (!isWeight(bias) || type.getRank() != 1 ||
          type.getDimSize(0) != linear.outFeatures())
        continue;
      // Its sizes may be asked for.
      if (!llvm::all_of(linear->getUses(), [&](OpOperand &use) {
            return use.getOwner() == op || isLike(use);
          }))
        continue;
      ++numChanged;
      rewriter.setInsertionPoint(op);
      auto made = gpt::LinearOp::create(
          rewriter,
          fusedPlaces(op.getContext(), {linear.getLoc(), op.getLoc()}),
          op.getType(), linear.getX(), linear.getWeight(), bias,
          linear.getInOutAttr());
      rewriter.replaceOp(op, made);
      return success();
    }
    return rewriter.notifyMatchFailure(
        op, "expected a linear without a bias and a repeated weight");
  }

  Pass::Statistic &numChanged;
};

struct CanonicalizeLinear : impl::CanonicalizeLinearBase<CanonicalizeLinear> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<BiasPattern>(&getContext(), numFused);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
  }
};
} // namespace
} // namespace gptc
