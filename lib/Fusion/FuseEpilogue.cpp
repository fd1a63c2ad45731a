//===- FuseEpilogue.cpp - what follows a GEMM into the GEMM ---------------===//
//
// Matches:  %y = gpt.linear %x, %w
// Produces: %y = gpt.fused_gemm %x, %w with an empty epilogue
//
// Matches:  %g = gpt.gelu %y           (silu, scale, arith and math on tensors)
// Produces: the scalar op at the end of the epilogue
//
// Matches:  %h = arith.mulf (silu (gemm %x, %wg)), (gemm %x, %wu)
// Produces: %h = gpt.fused_gemm lanes %x, %wg, %wu { mulf (silu %g), %u }
//
// Matches:  %z = arith.addf %r, %y     (also subf, mulf; either side)
// Produces: %z = gpt.fused_gemm residual %r
//
// The GEMM's value must have no other user; nothing is computed twice.
// Refuses activations of other ranks than [T, K].
//
//===----------------------------------------------------------------------===//
#include "GemmParts.h"
#include "gptc/Fusion/Passes.h"
#include "gptc/Stepping/Elementwise.h"
#include "gptc/Stepping/Remarks.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace gptc {
#define GEN_PASS_DEF_FUSEEPILOGUE
#include "gptc/Fusion/Passes.h.inc"

namespace {
constexpr StringRef kName = "fuse-epilogue";

/// The elementwise tensor op `op` on scalars.
Value emitScalar(OpBuilder &b, Location loc, Operation *op,
                 ArrayRef<Value> operands) {
  if (auto scale = dyn_cast<gpt::ScaleOp>(op)) {
    // The factor is rounded to f32 once, as the op says.
    Value factor = arith::ConstantOp::create(
        b, loc, b.getF32FloatAttr(scale.getFactor().convertToDouble()));
    return arith::MulFOp::create(b, loc, operands[0], factor);
  }
  OperationState state(loc, op->getName(), operands, {b.getF32Type()},
                       op->getAttrs());
  return b.create(state)->getResult(0);
}

/// The GEMM whose only used value is `value`, used by nothing but one op.
gpt::FusedGemmOp soleGemm(Value value, Operation *user) {
  auto gemm = value.getDefiningOp<gpt::FusedGemmOp>();
  return gemm && value.hasOneUse() && gemm->getBlock() == user->getBlock() &&
                 value != gemm.getCacheResult()
             ? gemm
             : gpt::FusedGemmOp();
}

/// A GEMM of one region and nothing but its tensor, so that it may move down to
/// its user.
bool isPlain(gpt::FusedGemmOp gemm) {
  return gemm.numSections() == 1 && !gemm.getCache() && !gemm.getRopeTable();
}

struct LinearPattern : OpRewritePattern<gpt::LinearOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(gpt::LinearOp op,
                                PatternRewriter &rewriter) const override {
    if (failed(isFusable(op, [&](Operation *at, const Twine &why) {
          return rewriter.notifyMatchFailure(at, why);
        })))
      return failure();
    auto gemm = GemmParts(op).create(rewriter, op.getLoc());
    rewriter.replaceOp(op, gemm.outputOf(0));
    return success();
  }
};

/// Base of the patterns on elementwise ops.
struct ElementwisePattern : RewritePattern {
  ElementwisePattern(MLIRContext *context, unsigned benefit,
                     Pass::Statistic &numFused)
      : RewritePattern(MatchAnyOpTypeTag(), benefit, context),
        numFused(numFused) {}
  Pass::Statistic &numFused;
};

struct ActivationPattern : ElementwisePattern {
  using ElementwisePattern::ElementwisePattern;
  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    if (!isElementwise(op) ||
        !isa<RankedTensorType>(op->getResult(0).getType()))
      return rewriter.notifyMatchFailure(op, "expected an elementwise op");
    // One operand from the GEMM, constants besides.
    gpt::FusedGemmOp gemm;
    Value source;
    for (Value operand : op->getOperands()) {
      if (splatConstant(operand))
        continue;
      if (source)
        return rewriter.notifyMatchFailure(op, "expected one tensor operand");
      source = operand;
      gemm = soleGemm(operand, op);
    }
    if (!gemm)
      return rewriter.notifyMatchFailure(
          op, "expected the only user of the value of a GEMM");
    unsigned section = sectionOf(cast<OpResult>(source));
    ++numFused;
    remarkPassed(op, "fusion", kName,
                 op->getName().getStringRef() + " in the GEMM's epilogue");

    GemmParts parts(gemm);
    parts.sections[section].emit =
        [&, inner = parts.sections[section].emit](OpBuilder &b, Location loc,
                                                  ArrayRef<Value> args) {
          Value y = inner(b, loc, args);
          SmallVector<Value> operands;
          for (Value operand : op->getOperands())
            if (operand == source)
              operands.push_back(y);
            else
              operands.push_back(arith::ConstantOp::create(
                  b, loc, b.getF32FloatAttr(*splatConstant(operand))));
          return emitScalar(b, op->getLoc(), op, operands);
        };
    rewriter.setInsertionPoint(gemm);
    gpt::FusedGemmOp made = replaceGemm(rewriter, gemm, parts);
    rewriter.replaceOp(op, made.outputOf(section));
    rewriter.eraseOp(gemm);
    return success();
  }
};

/// Two GEMMs of one activation that meet in a binary elementwise op.
LogicalResult matchLanes(Operation *op, Refuse refuse) {
  if (!isElementwise(op) || op->getNumOperands() != 2)
    return refuse(op, "expected a binary elementwise op");
  gpt::FusedGemmOp lanes[] = {soleGemm(op->getOperand(0), op),
                              soleGemm(op->getOperand(1), op)};
  for (gpt::FusedGemmOp lane : lanes)
    if (!lane || !isPlain(lane) || lane.getLanes() ||
        !lane.getResiduals().empty())
      return refuse(op, "expected two GEMMs of one weight without residuals, "
                        "used by nothing else");
  if (lanes[0].getX() != lanes[1].getX())
    return refuse(op, "expected two GEMMs of the same activation");
  return success();
}

struct LanesPattern : ElementwisePattern {
  using ElementwisePattern::ElementwisePattern;
  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    if (failed(matchLanes(op, [&](Operation *at, const Twine &why) {
          return rewriter.notifyMatchFailure(at, why);
        })))
      return failure();
    ++numFused;
    remarkPassed(op, "fusion", kName, "two GEMMs as lanes of one");
    auto first = op->getOperand(0).getDefiningOp<gpt::FusedGemmOp>();
    auto second = op->getOperand(1).getDefiningOp<gpt::FusedGemmOp>();
    GemmParts parts(first), other(second);
    parts.lanes = true;
    parts.weights.append(other.weights);
    parts.sections[0].emit =
        [&, inner = parts.sections[0].emit](OpBuilder &b, Location loc,
                                            ArrayRef<Value> args) {
          Value left = inner(b, loc, args[0]);
          Value right = other.sections[0].emit(b, loc, args[1]);
          return emitScalar(b, op->getLoc(), op, {left, right});
        };
    gpt::FusedGemmOp made = parts.create(
        rewriter, rewriter.getFusedLoc({first.getLoc(), second.getLoc()}));
    rewriter.replaceOp(op, made.outputOf(0));
    rewriter.eraseOp(first);
    rewriter.eraseOp(second);
    return success();
  }
};

/// The operand of `op` whose GEMM takes the other operand as a residual.
FailureOr<unsigned> matchResidual(Operation *op, Refuse refuse) {
  if (!isa<arith::AddFOp, arith::SubFOp, arith::MulFOp>(op) ||
      !isElementwise(op))
    return refuse(op, "expected addf, subf or mulf");
  std::optional<unsigned> best;
  for (unsigned i : {0u, 1u}) {
    gpt::FusedGemmOp gemm = soleGemm(op->getOperand(i), op);
    if (!gemm || !isPlain(gemm))
      continue;
    // The later of two, so that the other runs first.
    if (!best || op->getOperand(*best).getDefiningOp()->isBeforeInBlock(gemm))
      best = i;
  }
  if (!best)
    return refuse(op, "expected the only user of the value of a GEMM of one "
                      "section");
  return *best;
}

struct ResidualPattern : ElementwisePattern {
  using ElementwisePattern::ElementwisePattern;
  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    FailureOr<unsigned> from =
        matchResidual(op, [&](Operation *at, const Twine &why) {
          return rewriter.notifyMatchFailure(at, why);
        });
    if (failed(from))
      return failure();
    ++numFused;
    remarkPassed(op, "fusion", kName, "residual in the GEMM's epilogue");
    auto gemm = op->getOperand(*from).getDefiningOp<gpt::FusedGemmOp>();
    GemmParts parts(gemm);
    parts.residuals.push_back(op->getOperand(1 - *from));
    parts.sections[0].emit =
        [&, inner = parts.sections[0].emit](OpBuilder &b, Location loc,
                                            ArrayRef<Value> args) {
          Value y = inner(b, loc, args.drop_back());
          SmallVector<Value, 2> operands{y, args.back()};
          if (*from == 1)
            std::swap(operands[0], operands[1]);
          return emitScalar(b, op->getLoc(), op, operands);
        };
    // At the user, where the residual is known.
    gpt::FusedGemmOp made = parts.create(rewriter, gemm.getLoc());
    rewriter.replaceOp(op, made.outputOf(0));
    rewriter.eraseOp(gemm);
    return success();
  }
};

struct FuseEpilogue : impl::FuseEpilogueBase<FuseEpilogue> {
  void runOnOperation() override {
    // In phases: a gate's second GEMM must not become a residual first.
    auto run = [&](auto add) {
      RewritePatternSet patterns(&getContext());
      add(patterns);
      return applyPatternsGreedily(getOperation(), std::move(patterns));
    };
    MLIRContext *context = &getContext();
    if (failed(run([&](auto &p) { p.template add<LinearPattern>(context); })) ||
        failed(run([&](auto &p) {
          p.template add<ActivationPattern>(context, 1, numFused);
        })) ||
        failed(run([&](auto &p) {
          p.template add<LanesPattern, ActivationPattern>(context, 1, numFused);
        })) ||
        failed(run([&](auto &p) {
          p.template add<LanesPattern>(context, 2, numFused);
          p.template add<ResidualPattern, ActivationPattern>(context, 1,
                                                             numFused);
        })))
      return signalPassFailure();

    getOperation()->walk([](Operation *op) {
      if (!isElementwise(op) || op->getParentOfType<gpt::FusedGemmOp>())
        return;
      for (Value operand : op->getOperands())
        if (operand.getDefiningOp<gpt::FusedGemmOp>())
          return remarkMissed(
              op, "fusion", kName,
              operand.hasOneUse()
                  ? "expected a GEMM of one section"
                  : "expected no other user of the GEMM's value");
    });
  }
};
} // namespace
} // namespace gptc
