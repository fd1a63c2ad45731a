//===- FuseQkv.cpp - one GEMM for queries, keys and values ----------------===//
//
// Matches:  %q = gpt.linear %n, %wq ; %k = gpt.linear %n, %wk
//           %v = gpt.linear %n, %wv
//           or %q, %k, %v = gpt.split (gpt.linear %n, %wqkv)
//           that feed q, k and v of one attention, through split_heads, rope,
//           a norm of the heads, a scale or the KV cache
// Produces: %q, %k, %v = gpt.fused_gemm %n sections of %wq, %wk, %wv
//           (of a packed weight: its tensor.extract_slices)
//
// Widths (GQA), biases and weight orientations may differ. Refuses linears of
// different activations, and a packed linear with another user.
//
//===----------------------------------------------------------------------===//
#include "GemmParts.h"
#include "gptc/Fusion/Passes.h"
#include "gptc/Stepping/Attention.h"
#include "gptc/Stepping/Remarks.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace gptc {
#define GEN_PASS_DEF_FUSEQKV
#include "gptc/Fusion/Passes.h.inc"

namespace {
/// Where a q, k or v of attention was computed.
Value trace(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    Value source;
    if (auto read = dyn_cast<gpt::KVReadOp>(op)) {
      auto append = read.getCache().getDefiningOp<gpt::KVAppendOp>();
      if (!append || append.getLayer() != read.getLayer())
        return value;
      source = value == read.getKeys() ? append.getKeys() : append.getValues();
    } else if (isa<gpt::RopeOp, gpt::SplitHeadsOp, gpt::LayerNormOp,
                   gpt::RmsNormOp>(op)) {
      source = op->getOperand(0);
    } else if (!matchScale(value, source)) {
      return value;
    }
    value = source;
  }
  return value;
}

struct Qkv {
  SmallVector<gpt::LinearOp> linears; // q, k, v; or one packed
  gpt::SplitOp split;                 // of the packed one
  SmallVector<unsigned> parts;        // of the split: q, k, v
};

FailureOr<Qkv> matchQkv(gpt::MatmulOp output, Refuse refuse) {
  FailureOr<Attention> attention = matchAttention(output, refuse);
  if (failed(attention))
    return failure();
  Value sources[] = {trace(attention->q), trace(attention->k),
                     trace(attention->v)};
  Qkv result;
  auto distinct = [&] {
    return sources[0] != sources[1] && sources[1] != sources[2] &&
           sources[0] != sources[2];
  };
  if (!distinct())
    return refuse(output, "expected three projections for q, k and v");

  if (auto split = sources[0].getDefiningOp<gpt::SplitOp>()) {
    auto packed = split.getX().getDefiningOp<gpt::LinearOp>();
    for (Value source : sources) {
      if (source.getDefiningOp() != split)
        return refuse(output, "expected q, k and v from one gpt.split");
      result.parts.push_back(cast<OpResult>(source).getResultNumber());
    }
    if (split.getNumResults() != 3)
      return refuse(split,
                    "expected 3 parts, got " + Twine(split.getNumResults()));
    if (!packed)
      return refuse(split, "expected the split of a gpt.linear");
    if (failed(isFusable(packed, refuse)))
      return failure();
    if (!packed->hasOneUse())
      return refuse(packed, "expected the split to be the only user");
    result.split = split;
    result.linears.push_back(packed);
    return result;
  }

  for (Value source : sources) {
    auto linear = source.getDefiningOp<gpt::LinearOp>();
    if (!linear)
      return refuse(output, "expected q, k and v each from a gpt.linear");
    if (failed(isFusable(linear, refuse)))
      return failure();
    if (!result.linears.empty() && linear.getX() != result.linears[0].getX())
      return refuse(linear, "expected the activation of the q projection");
    if (!result.linears.empty() &&
        linear->getBlock() != result.linears[0]->getBlock())
      return refuse(linear, "expected the block of the q projection");
    result.linears.push_back(linear);
  }
  Operation *first = result.linears[0];
  for (gpt::LinearOp linear : result.linears)
    if (linear->isBeforeInBlock(first))
      first = linear;
  for (gpt::LinearOp linear : result.linears)
    if (!canHoist(linear.getWeight(), first) ||
        (linear.getBias() && !canHoist(linear.getBias(), first)))
      return refuse(linear, "expected a weight known before the first of the "
                            "three projections");
  return result;
}

/// Rows or columns [offset, offset + size) of a weight or bias.
Value slice(OpBuilder &b, Location loc, Value value, int64_t axis,
            int64_t offset, int64_t size) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0)),
      strides(type.getRank(), b.getIndexAttr(1)), sizes;
  for (int64_t dim : type.getShape())
    sizes.push_back(b.getIndexAttr(dim));
  offsets[axis] = b.getIndexAttr(offset);
  sizes[axis] = b.getIndexAttr(size);
  return tensor::ExtractSliceOp::create(b, loc, value, offsets, sizes, strides);
}

struct FuseQkvPattern : OpRewritePattern<gpt::MatmulOp> {
  FuseQkvPattern(MLIRContext *context, Pass::Statistic &numFused)
      : OpRewritePattern(context), numFused(numFused) {}

  LogicalResult matchAndRewrite(gpt::MatmulOp output,
                                PatternRewriter &rewriter) const override {
    FailureOr<Qkv> qkv = matchQkv(output, [&](Operation *op, const Twine &why) {
      return rewriter.notifyMatchFailure(op, why);
    });
    if (failed(qkv))
      return failure();
    ++numFused;
    remarkPassed(output, "fusion", "fuse-qkv",
                 qkv->split ? "packed projection in three sections"
                            : "three projections in one GEMM");
    GemmParts parts;
    parts.x = qkv->linears[0].getX();
    if (qkv->split) {
      rewriteSplit(*qkv, parts, rewriter);
      return success();
    }

    Operation *first = qkv->linears[0];
    SmallVector<Location> locs;
    for (gpt::LinearOp linear : qkv->linears) {
      locs.push_back(linear.getLoc());
      if (linear->isBeforeInBlock(first))
        first = linear;
    }
    for (gpt::LinearOp linear : qkv->linears) {
      hoist(rewriter, linear.getWeight(), first);
      if (linear.getBias())
        hoist(rewriter, linear.getBias(), first);
      parts.addSection(
          {linear.getWeight(), linear.getBias(), linear.getInOut()});
    }
    rewriter.setInsertionPoint(first);
    gpt::FusedGemmOp gemm = parts.create(rewriter, rewriter.getFusedLoc(locs));
    for (auto [i, linear] : llvm::enumerate(qkv->linears))
      rewriter.replaceOp(linear, gemm.outputOf(i));
    return success();
  }

  static void rewriteSplit(Qkv &qkv, GemmParts &parts,
                           PatternRewriter &rewriter) {
    gpt::LinearOp packed = qkv.linears[0];
    rewriter.setInsertionPoint(packed);
    SmallVector<Value> replacements(3);
    for (unsigned part : qkv.parts) {
      auto width = [&](unsigned i) {
        return cast<RankedTensorType>(qkv.split.getResult(i).getType())
            .getDimSize(1);
      };
      int64_t offset = 0;
      for (unsigned i = 0; i < part; ++i)
        offset += width(i);
      Location loc = packed.getLoc();
      Value weight = slice(rewriter, loc, packed.getWeight(),
                           packed.getInOut() ? 1 : 0, offset, width(part));
      Value bias = packed.getBias();
      if (bias)
        bias = slice(rewriter, loc, bias, 0, offset, width(part));
      parts.addSection({weight, bias, packed.getInOut()});
    }
    gpt::FusedGemmOp gemm = parts.create(rewriter, packed.getLoc());
    for (auto [i, part] : llvm::enumerate(qkv.parts))
      replacements[part] = gemm.outputOf(i);
    rewriter.replaceOp(qkv.split, replacements);
    rewriter.eraseOp(packed);
  }

  Pass::Statistic &numFused;
};

struct FuseQkv : impl::FuseQkvBase<FuseQkv> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FuseQkvPattern>(&getContext(), numFused);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    getOperation()->walk([](gpt::MatmulOp output) {
      if (!output.getA().getDefiningOp<gpt::SoftmaxOp>())
        return;
      auto quiet = [](Operation *, const Twine &) { return failure(); };
      if (auto attention = matchAttention(output, quiet);
          succeeded(attention) &&
          trace(attention->q).getDefiningOp<gpt::FusedGemmOp>())
        return;
      (void)matchQkv(output, [](Operation *op, const Twine &why) {
        remarkMissed(op, "fusion", "fuse-qkv", why);
        return failure();
      });
    });
  }
};
} // namespace
} // namespace gptc
