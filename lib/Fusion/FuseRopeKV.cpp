//===- FuseRopeKV.cpp - RoPE and KV append into the QKV GEMM --------------===//
//
// Matches:  %q, %k, %v = gpt.fused_gemm %n sections
//           %r = gpt.rope (split_heads %q), %pos #rope
// Produces: the section's region yields fma(partner, sin, acc * cos), its
//           operand is gpt.rope_table %pos #rope ; %r = gpt.split_heads %q
//
// Matches:  %c1 = gpt.kv_append %c0, (split_heads %k), (split_heads %v) at ...
// Produces: the sections append keys and values; %c1 is the GEMM's
//
// Refuses heads that have another user: a section that appends has no tensor
// result.
//
//===----------------------------------------------------------------------===//
#include "GemmParts.h"
#include "gptc/Fusion/Passes.h"
#include "gptc/Stepping/Remarks.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace gptc {
#define GEN_PASS_DEF_FUSEROPEKV
#include "gptc/Fusion/Passes.h.inc"

namespace {
struct Section {
  gpt::FusedGemmOp gemm;
  unsigned index = 0;
};

/// The section whose split heads are `heads`, used by nothing else.
FailureOr<Section> matchSection(Operation *user, Value heads, Refuse refuse) {
  auto split = heads.getDefiningOp<gpt::SplitHeadsOp>();
  auto gemm = split ? split.getX().getDefiningOp<gpt::FusedGemmOp>()
                    : gpt::FusedGemmOp();
  if (!gemm || gemm.getLanes() || gemm->getBlock() != user->getBlock())
    return refuse(user, "expected the split heads of a section of a "
                        "gpt.fused_gemm");
  if (!split->hasOneUse() || !split.getX().hasOneUse())
    return refuse(split, "expected no other user of the heads");
  return Section{gemm, sectionOf(cast<OpResult>(split.getX()))};
}

/// One id for every row of the GEMM.
bool hasRowsOf(Value ids, gpt::FusedGemmOp gemm) {
  return cast<RankedTensorType>(ids.getType()).getDimSize(0) ==
         cast<RankedTensorType>(gemm.getX().getType()).getDimSize(0);
}

FailureOr<Section> matchRope(gpt::RopeOp op, Refuse refuse) {
  FailureOr<Section> section = matchSection(op, op.getX(), refuse);
  if (failed(section))
    return failure();
  gpt::FusedGemmOp gemm = section->gemm;
  if (!gemm.getResiduals().empty() || gemm.ropeOf(section->index) ||
      !isIdentity(gemm.getEpilogues()[section->index]))
    return refuse(gemm, "expected a section without an epilogue");
  if (!isBefore(op.getPositions(), gemm) || !hasRowsOf(op.getPositions(), gemm))
    return refuse(op, "expected positions of its rows, known before the GEMM");
  if (Value table = gemm.getRopeTable()) {
    auto made = table.getDefiningOp<gpt::RopeTableOp>();
    if (!made || made.getPositions() != op.getPositions() ||
        made.getRope() != op.getRope())
      return refuse(op, "expected the rotary embedding of the GEMM's other "
                        "section");
  }
  return section;
}

Value emitRotation(OpBuilder &b, Location loc, ArrayRef<Value> args) {
  Value scaled = arith::MulFOp::create(b, loc, args[0], args[2]);
  return math::FmaOp::create(b, loc, args[1], args[3], scaled);
}

struct FuseRopePattern : OpRewritePattern<gpt::RopeOp> {
  FuseRopePattern(MLIRContext *context, Pass::Statistic &numFused)
      : OpRewritePattern(context), numFused(numFused) {}

  LogicalResult matchAndRewrite(gpt::RopeOp op,
                                PatternRewriter &rewriter) const override {
    FailureOr<Section> section =
        matchRope(op, [&](Operation *at, const Twine &why) {
          return rewriter.notifyMatchFailure(at, why);
        });
    if (failed(section))
      return failure();
    ++numFused;
    remarkPassed(op, "fusion", "fuse-rope-kv", "rope in the GEMM's epilogue");
    gpt::FusedGemmOp gemm = section->gemm;
    GemmParts parts(gemm);
    if (!parts.ropeTable) {
      // As early as the positions are known, so that cse merges the layers'.
      rewriter.setInsertionPointAfterValue(op.getPositions());
      int64_t tokens =
          cast<RankedTensorType>(op.getPositions().getType()).getDimSize(0);
      auto type = RankedTensorType::get({tokens, 2, op.getRope().getDim()},
                                        rewriter.getF32Type());
      parts.ropeTable = gpt::RopeTableOp::create(
          rewriter, placeOf(op), type, op.getPositions(), op.getRope());
    }
    parts.sections[section->index].rope = op.getRope().getPairs();
    parts.sections[section->index].emit = emitRotation;
    rewriter.setInsertionPoint(gemm);
    rewriter.replaceOp(op, op.getX());
    replaceGemm(rewriter, gemm, parts);
    rewriter.eraseOp(gemm);
    return success();
  }

  Pass::Statistic &numFused;
};

struct AppendSections {
  gpt::FusedGemmOp gemm;
  unsigned keys = 0, values = 0;
};

FailureOr<AppendSections> matchAppend(gpt::KVAppendOp op, Refuse refuse) {
  FailureOr<Section> keys = matchSection(op, op.getKeys(), refuse);
  if (failed(keys))
    return failure();
  FailureOr<Section> values = matchSection(op, op.getValues(), refuse);
  if (failed(values))
    return failure();
  if (keys->gemm != values->gemm || keys->index == values->index)
    return refuse(op, "expected keys and values from two sections of one "
                      "gpt.fused_gemm");
  gpt::FusedGemmOp gemm = keys->gemm;
  if (gemm.getCache() || !gemm.getResiduals().empty())
    return refuse(gemm, "expected a GEMM without cache and residuals");
  for (Value value : std::initializer_list<Value>{
           op.getCache(), op.getPositions(), op.getSequences()})
    if (!isBefore(value, gemm))
      return refuse(op, "expected cache, positions and sequences known before "
                        "the GEMM");
  if (!hasRowsOf(op.getPositions(), gemm))
    return refuse(op, "expected a position for every row of the GEMM");
  return AppendSections{gemm, keys->index, values->index};
}

struct FuseAppendPattern : OpRewritePattern<gpt::KVAppendOp> {
  FuseAppendPattern(MLIRContext *context, Pass::Statistic &numFused)
      : OpRewritePattern(context), numFused(numFused) {}

  LogicalResult matchAndRewrite(gpt::KVAppendOp op,
                                PatternRewriter &rewriter) const override {
    FailureOr<AppendSections> match =
        matchAppend(op, [&](Operation *at, const Twine &why) {
          return rewriter.notifyMatchFailure(at, why);
        });
    if (failed(match))
      return failure();
    ++numFused;
    remarkPassed(op, "fusion", "fuse-rope-kv",
                 "KV append in the GEMM's epilogue");
    gpt::FusedGemmOp gemm = match->gemm;
    GemmParts parts(gemm);
    parts.sections[match->keys].append = gpt::Append::Keys;
    parts.sections[match->values].append = gpt::Append::Values;
    parts.cache = op.getCache();
    parts.positions = op.getPositions();
    parts.sequences = op.getSequences();
    parts.layer = op.getLayer();
    Operation *keys = op.getKeys().getDefiningOp();
    Operation *values = op.getValues().getDefiningOp();
    rewriter.setInsertionPoint(gemm);
    gpt::FusedGemmOp made = replaceGemm(rewriter, gemm, parts);
    rewriter.replaceOp(op, made.getCacheResult());
    rewriter.eraseOp(keys);
    rewriter.eraseOp(values);
    rewriter.eraseOp(gemm);
    return success();
  }

  Pass::Statistic &numFused;
};

struct FuseRopeKV : impl::FuseRopeKVBase<FuseRopeKV> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FuseRopePattern, FuseAppendPattern>(&getContext(), numFused);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    auto missed = [](Operation *op, const Twine &why) -> LogicalResult {
      remarkMissed(op, "fusion", "fuse-rope-kv", why);
      return failure();
    };
    getOperation()->walk([&](Operation *op) {
      if (auto rope = dyn_cast<gpt::RopeOp>(op))
        (void)matchRope(rope, missed);
      else if (auto append = dyn_cast<gpt::KVAppendOp>(op))
        (void)matchAppend(append, missed);
    });
  }
};
} // namespace
} // namespace gptc
