//===- FuseEpilogue.cpp - what follows a GEMM into the GEMM ---------------===//
//
// Matches:  %y = gpt.linear %x, %w
// Produces: %y = gpt.fused_gemm %x, %w with an empty epilogue
//
// Matches:  %a, %b = gpt.split (gpt.fused_gemm %x, %w)
// Produces: %a, %b = gpt.fused_gemm %x sections of the parts of %w
//
// Matches:  %g = gpt.gelu %y           (silu, scale, arith and math on tensors,
//                                       constants and gpt.broadcast rows
//                                       beside)
// Produces: the scalar op at the end of the epilogue; %y stays a result if it
//           has another user
//
// Matches:  %h = arith.mulf (silu (gemm %x, %wg)), (gemm %x, %wu)
// Produces: %h = gpt.fused_gemm lanes %x, %wg, %wu { mulf (silu %g), %u }
//
// Matches:  %z = arith.addf %r, %y     (any elementwise op; either side)
// Produces: %z = gpt.fused_gemm residual %r
//
// No GEMM is computed twice and no value with another user goes. Refuses
// activations of other ranks than [T, K], another operand beside a GEMM of
// several sections, and one that depends on the GEMM.
//
//===----------------------------------------------------------------------===//
#include "Epilogue.h"
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
constexpr StringRef kName = epilogueFusion;

/// The elementwise tensor op `op` on scalars.
Value emitScalar(OpBuilder &b, Operation *op, ArrayRef<Value> operands) {
  Location loc = op->getLoc();
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

//===----------------------------------------------------------------------===//
// Linears and packed ones
//===----------------------------------------------------------------------===//

struct LinearPattern : OpRewritePattern<gpt::LinearOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(gpt::LinearOp op,
                                PatternRewriter &rewriter) const override {
    if (failed(isFusable(op, [&](Operation *at, const Twine &why) {
          return rewriter.notifyMatchFailure(at, why);
        })))
      return failure();
    auto gemm = GemmParts(op).create(rewriter);
    rewriter.replaceOp(op, gemm.outputOf(0));
    return success();
  }
};

/// The GEMM that a split, perhaps of its heads, takes apart.
FailureOr<gpt::FusedGemmOp> matchSplit(gpt::SplitOp op, Refuse refuse) {
  Value packed = op.getX();
  auto heads = packed.getDefiningOp<gpt::SplitHeadsOp>();
  gpt::FusedGemmOp gemm = gemmOf(heads ? heads.getX() : packed, op);
  if (!gemm)
    return refuse(op, "expected the split of a GEMM's value"); // no candidate
  if (gemm.numSections() != 1 || gemm.getLanes() || !isPlain(gemm) ||
      !gemm.getResiduals().empty() || !isIdentity(gemm.getEpilogues()[0]))
    return refuse(op, "expected a GEMM without an epilogue before the split; "
                      "what stands between may stand after it, part by part");
  if (!packed.hasOneUse() || (heads && !heads.getX().hasOneUse()))
    return refuse(op, "expected the split to be the only user of the packed "
                      "projection; its other users need it as one tensor");
  if (!isWhole(gemm.getWeights()[0]) ||
      (gemm.biasOf(0) && !isWhole(gemm.biasOf(0))))
    return refuse(op, "expected a packed weight that is no part of another");
  return gemm;
}

struct SplitPattern : OpRewritePattern<gpt::SplitOp> {
  SplitPattern(MLIRContext *context, Pass::Statistic &numFused)
      : OpRewritePattern(context), numFused(numFused) {}
  LogicalResult matchAndRewrite(gpt::SplitOp op,
                                PatternRewriter &rewriter) const override {
    FailureOr<gpt::FusedGemmOp> gemm =
        matchSplit(op, [&](Operation *at, const Twine &why) {
          return rewriter.notifyMatchFailure(at, why);
        });
    if (failed(gemm))
      return failure();
    ++numFused;
    remarkPassed(op, "fusion", kName,
                 "packed projection in " + Twine(op.getNumResults()) +
                     " sections");
    GemmParts whole(*gemm), parts(*gemm);
    parts.weights.clear();
    parts.sections.clear();
    parts.places.push_back(op.getLoc());
    rewriter.setInsertionPoint(*gemm);
    int64_t from = 0, of = op.getX().getType().getShape().back();
    for (Type type : op.getParts().getTypes()) {
      int64_t take = cast<RankedTensorType>(type).getShape().back();
      parts.addSection(
          partOf(rewriter, gemm->getLoc(), whole.weights[0], {from, take, of}));
      from += take;
    }
    gpt::FusedGemmOp made = parts.create(rewriter);
    auto heads = op.getX().getDefiningOp<gpt::SplitHeadsOp>();
    rewriter.setInsertionPoint(op);
    SmallVector<Value> values(made.getOutputs());
    if (heads)
      for (auto [value, part] : llvm::zip(values, op.getParts()))
        value = gpt::SplitHeadsOp::create(rewriter, op.getLoc(), part.getType(),
                                          value);
    rewriter.replaceOp(op, values);
    if (heads)
      rewriter.eraseOp(heads);
    rewriter.eraseOp(*gemm);
    return success();
  }
  Pass::Statistic &numFused;
};

//===----------------------------------------------------------------------===//
// Elementwise ops
//===----------------------------------------------------------------------===//

/// What an operand of an absorbed op is: a constant, a value of the section, or
/// a residual.
struct Source {
  std::optional<double> constant;
  std::optional<unsigned> yield;
  Value residual;
};

struct Absorbed {
  gpt::FusedGemmOp gemm;
  unsigned section = 0;
  SmallVector<Source> sources; // one for each operand
  Operation *place = nullptr;  // before which the new GEMM stands
};

/// How the GEMM before `op` takes it into its epilogue; with tensors beside
/// only if `residuals`.
FailureOr<Absorbed> matchAbsorbed(Operation *op, bool residuals,
                                  Refuse refuse) {
  auto type = op->getNumResults() == 1
                  ? dyn_cast<RankedTensorType>(op->getResult(0).getType())
                  : RankedTensorType();
  if (!type || !isElementwise(op) || isa<gpt::DropoutOp>(op))
    return refuse(op, "expected an op on numbers of one type in an epilogue, "
                      "got " +
                          op->getName().getStringRef() +
                          "; write relu as arith.maximumf with 0");
  Absorbed result;
  // The last GEMM, so that the others have run.
  for (Value operand : op->getOperands())
    if (gpt::FusedGemmOp gemm = gemmOf(operand, op))
      if (!result.gemm || result.gemm->isBeforeInBlock(gemm))
        result.gemm = gemm;
  gpt::FusedGemmOp gemm = result.gemm;
  if (!gemm)
    return refuse(op, "expected the value of a GEMM"); // no candidate

  std::optional<unsigned> section;
  bool late = false;
  for (Value operand : op->getOperands()) {
    Source &source = result.sources.emplace_back();
    if (operand.getDefiningOp() == gemm) {
      GemmValue value = gemmValueOf(cast<OpResult>(operand));
      if (section && *section != value.section)
        return refuse(op, "expected values of one section, got those of two "
                          "that cannot be lanes: lanes have equal widths, no "
                          "rope and no KV append");
      section = value.section;
      source.yield = value.yield;
      continue;
    }
    source.constant = splatConstant(operand);
    if (source.constant)
      continue;
    source.residual = rowOf(operand);
    if (!source.residual) {
      if (!residuals)
        return refuse(op, "expected one tensor operand"); // no candidate
      source.residual = operand;
    }
    if (gemm.numSections() != 1 || !isPlain(gemm))
      return refuse(op, "expected a GEMM of one section, or lanes, beside "
                        "another tensor, got " +
                            Twine(gemm.numSections()) +
                            " sections; the op stays a kernel of its own");
    late |= !canHoist(source.residual, gemm);
  }
  result.section = *section;
  result.place = late ? op : gemm.getOperation();
  if (late)
    if (Operation *user = userBefore(gemm, op))
      return refuse(op, "expected the other operand to be known before the "
                        "GEMM, since its value is used by " +
                            user->getName().getStringRef() +
                            " in between; compute the other operand first");
  return result;
}

/// Absorbs an op; with other tensors only if `residuals`.
template <bool residuals> struct AbsorbPattern : ElementwisePattern {
  using ElementwisePattern::ElementwisePattern;
  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    FailureOr<Absorbed> match =
        matchAbsorbed(op, residuals, [&](Operation *at, const Twine &why) {
          return rewriter.notifyMatchFailure(at, why);
        });
    if (failed(match))
      return failure();
    bool residual = llvm::any_of(match->sources, [](const Source &source) {
      return static_cast<bool>(source.residual);
    });
    ++numFused;
    remarkPassed(op, "fusion", kName,
                 residual ? Twine("residual in the GEMM's epilogue")
                          : op->getName().getStringRef() +
                                " in the GEMM's epilogue");

    gpt::FusedGemmOp gemm = match->gemm;
    GemmParts parts(gemm);
    SmallVector<size_t> numbers; // of the residuals, by operand
    for (const Source &source : match->sources) {
      auto *known = llvm::find(parts.residuals, source.residual);
      numbers.push_back(known - parts.residuals.begin());
      if (!source.residual || known != parts.residuals.end())
        continue;
      parts.residuals.push_back(source.residual);
      if (match->place == gemm.getOperation())
        hoist(rewriter, source.residual, gemm);
    }
    parts.places.push_back(op->getLoc());
    GemmSection &section = parts.sections[match->section];
    size_t before = gemm.getResiduals().size(), now = parts.residuals.size();
    section.emit = [&, inner = section.emit](OpBuilder &b, Location loc,
                                             ArrayRef<Value> args) {
      GemmSection::Yields yields = inner(b, loc, args.drop_back(now - before));
      SmallVector<Value> operands;
      for (auto [source, number] : llvm::zip(match->sources, numbers))
        if (source.constant)
          operands.push_back(arith::ConstantOp::create(
              b, loc, b.getF32FloatAttr(*source.constant)));
        else
          operands.push_back(source.yield ? yields[*source.yield]
                                          : args[args.size() - now + number]);
      yields.push_back(emitScalar(b, op, operands));
      return yields;
    };
    rewriter.setInsertionPoint(match->place);
    gpt::FusedGemmOp made = replaceGemm(rewriter, gemm, parts);
    SmallVector<Value> operands(op->getOperands());
    rewriter.replaceOp(op, made.outputsOf(match->section).back());
    // Rows may stand before the new GEMM, whose sizes they ask for.
    for (Value operand : operands)
      if (auto broadcast = operand.getDefiningOp<gpt::BroadcastOp>();
          broadcast && broadcast->use_empty())
        rewriter.eraseOp(broadcast);
    rewriter.eraseOp(gemm);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Why what is left after a GEMM was left.
void remarkLeft(Operation *op) {
  auto missed = [](Operation *at, const Twine &why) -> LogicalResult {
    remarkMissed(at, "fusion", kName, why);
    return failure();
  };
  if (auto linear = dyn_cast<gpt::LinearOp>(op))
    return (void)isFusable(linear, missed);
  if (auto split = dyn_cast<gpt::SplitOp>(op)) {
    auto heads = split.getX().getDefiningOp<gpt::SplitHeadsOp>();
    if (gemmOf(heads ? heads.getX() : split.getX(), op))
      (void)matchSplit(split, missed);
    return;
  }
  if (op->getNumResults() != 1 ||
      llvm::none_of(op->getOperands(), [&](Value operand) {
        return static_cast<bool>(gemmOf(operand, op));
      }))
    return;
  if (isa<gpt::DropoutOp>(op)) // goes by itself
    return;
  bool elementwise =
      isElementwise(op) ||
      (isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
       op->hasTrait<OpTrait::Elementwise>());
  if (elementwise)
    (void)matchAbsorbed(op, /*residuals=*/true, missed);
}

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
          p.template add<SplitPattern>(context, numFused);
        })) ||
        failed(run([&](auto &p) {
          p.template add<AbsorbPattern<false>>(context, 1, numFused);
        })) ||
        failed(run([&](auto &p) {
          addLanesPattern(p, 1, numFused);
          p.template add<AbsorbPattern<false>>(context, 1, numFused);
        })) ||
        failed(run([&](auto &p) {
          addLanesPattern(p, 2, numFused);
          p.template add<AbsorbPattern<true>>(context, 1, numFused);
        })))
      return signalPassFailure();
    dropUnusedResults(getOperation());
    getOperation()->walk([](Operation *op) {
      if (!op->getParentOfType<gpt::FusedGemmOp>())
        remarkLeft(op);
    });
  }
};
} // namespace
} // namespace gptc
