//===- FuseAttention.cpp - attention to flash_attention -------------------===//
//
// Matches:  %s = gpt.matmul %q, %k transpose_b groups g
//           %t = gpt.scale %s by f                    (each of these five, or
//           %c = gpt.softcap %t at cap                 not; several masks; in
//           %b = gpt.alibi %c slopes [..]              another order where that
//           %m = gpt.mask %b, %mask                    means the same)
//           %h = gpt.causal_mask %m window w
//           %p = gpt.softmax %h
//           %o = gpt.matmul %p, %v groups g
// Produces: over %k, %v = gpt.kv_read of the cache that this step appended to:
//             %a = gpt.flash_attention (merge_heads %q) cache %c at %pos, %seq
//                    layer i causal window w scale f softcap .. groups g
//             %o = gpt.split_heads %a
//           otherwise
//             %o = gpt.flash_attention %q, %k, %v mask %mask, .. causal ..
//
// Other spellings are brought into this one by gpt-canonicalize-attention.
// Refuses a value between that has another user, and attention over the cache
// without the causal mask, with a mask operand or with a batch dimension.
//
//===----------------------------------------------------------------------===//
#include "gptc/Fusion/Passes.h"
#include "gptc/Stepping/Attention.h"
#include "gptc/Stepping/Remarks.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace gptc {
#define GEN_PASS_DEF_FUSEATTENTION
#include "gptc/Fusion/Passes.h.inc"

namespace {
struct Flash {
  Attention attention;
  Value cache, positions, sequences; // of the cached form
  int64_t layer = 0;
};

FailureOr<Flash> matchFlash(gpt::MatmulOp output, Refuse refuse) {
  FailureOr<Attention> attention = matchAttention(output, refuse);
  if (failed(attention))
    return failure();
  Flash result;
  result.attention = std::move(*attention);
  Attention &a = result.attention;
  if (a.k.getType() != a.v.getType())
    return refuse(output, "expected keys and values of one type");
  if (output.getType() != a.q.getType())
    return refuse(output, "expected a result of the queries' type");

  auto type = cast<RankedTensorType>(a.q.getType());
  if (type.isDynamicDim(type.getRank() - 1))
    return refuse(output, "expected a static head size D of queries, keys and "
                          "values");
  auto read = a.k.getDefiningOp<gpt::KVReadOp>();
  if (!read)
    return result;
  if (a.k != read.getKeys() || a.v != read.getValues())
    return refuse(read, "expected keys and values of one gpt.kv_read");
  if (!a.causal)
    return refuse(output, "expected gpt.causal_mask over the KV cache");
  if (!a.masks.empty())
    return refuse(a.masks.front(),
                  "expected no mask beside the causal one over the KV cache, "
                  "which holds real tokens only: a batch is ragged, not "
                  "padded; use a window, or named tensors instead of a cache");
  Operation *writer = read.getCache().getDefiningOp();
  if (auto append = dyn_cast_or_null<gpt::KVAppendOp>(writer)) {
    result.positions = append.getPositions();
    result.sequences = append.getSequences();
    result.layer = append.getLayer();
  } else if (auto gemm = dyn_cast_or_null<gpt::FusedGemmOp>(writer)) {
    result.positions = gemm.getPositions();
    result.sequences = gemm.getSequences();
    result.layer = gemm.getLayer().value_or(-1);
  } else {
    return refuse(read, "expected a cache that this step appended to");
  }
  if (result.layer != static_cast<int64_t>(read.getLayer()))
    return refuse(read, "expected layer " + Twine(result.layer) +
                            " as in the append, got " + Twine(read.getLayer()));
  result.cache = read.getCache();
  return result;
}

struct FuseAttentionPattern : OpRewritePattern<gpt::MatmulOp> {
  FuseAttentionPattern(MLIRContext *context, Pass::Statistic &numFused)
      : OpRewritePattern(context), numFused(numFused) {}

  LogicalResult matchAndRewrite(gpt::MatmulOp output,
                                PatternRewriter &rewriter) const override {
    FailureOr<Flash> flash =
        matchFlash(output, [&](Operation *op, const Twine &why) {
          return rewriter.notifyMatchFailure(op, why);
        });
    if (failed(flash))
      return failure();
    ++numFused;
    remarkPassed(output, "fusion", "fuse-attention",
                 flash->cache ? "attention over the KV cache"
                              : "attention over tensors");
    const Attention &a = flash->attention;
    // Named after the output, and all that goes in.
    SmallVector<Location> places{output.getLoc()};
    for (Operation *op : a.chain)
      places.push_back(op->getLoc());
    if (flash->cache)
      places.push_back(a.k.getLoc());
    Location loc = rewriter.getFusedLoc(places);
    UnitAttr causal = a.causal ? rewriter.getUnitAttr() : UnitAttr();
    FloatAttr scale = rewriter.getF64FloatAttr(a.scale), softcap, fill;
    IntegerAttr groups = rewriter.getI64IntegerAttr(a.groups), window;
    DenseF64ArrayAttr slopes;
    if (a.window)
      window = rewriter.getI64IntegerAttr(*a.window);
    if (a.softcap)
      softcap = rewriter.getF64FloatAttr(*a.softcap);
    if (!a.slopes.empty())
      slopes = rewriter.getDenseF64ArrayAttr(a.slopes);
    if (a.fill)
      fill = rewriter.getF64FloatAttr(*a.fill);
    SmallVector<Value> masks;
    for (gpt::MaskOp mask : a.masks)
      masks.push_back(mask.getMask());
    if (!flash->cache) {
      Value attended = gpt::FlashAttentionOp::create(
          rewriter, loc, output.getType(), a.q, a.k, a.v, Value(), Value(),
          Value(), masks, IntegerAttr(), causal, window, scale, softcap, slopes,
          fill, groups);
      rewriter.replaceOp(output, attended);
      return success();
    }
    auto q = cast<RankedTensorType>(a.q.getType());
    auto merged = RankedTensorType::get(
        {q.getDimSize(1), q.getDimSize(0) * q.getDimSize(2)},
        q.getElementType());
    Value mergedQ = gpt::MergeHeadsOp::create(rewriter, loc, merged, a.q);
    Value attended = gpt::FlashAttentionOp::create(
        rewriter, loc, merged, mergedQ, Value(), Value(), flash->cache,
        flash->positions, flash->sequences, masks,
        rewriter.getI64IntegerAttr(flash->layer), causal, window, scale,
        softcap, slopes, fill, groups);
    rewriter.replaceOpWithNewOp<gpt::SplitHeadsOp>(output, output.getType(),
                                                   attended);
    return success();
  }

  Pass::Statistic &numFused;
};

struct FuseAttention : impl::FuseAttentionBase<FuseAttention> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FuseAttentionPattern>(&getContext(), numFused);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    getOperation()->walk([](gpt::MatmulOp output) {
      if (output.getA().getDefiningOp<gpt::SoftmaxOp>())
        (void)matchFlash(output, [](Operation *op, const Twine &why) {
          remarkMissed(op, "fusion", "fuse-attention", why);
          return failure();
        });
    });
  }
};
} // namespace
} // namespace gptc
