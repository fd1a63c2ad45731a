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
// Values that something else needs too (unrotated heads, keys beside the cache)
// are further results of the section. Refuses positions that are known only
// after the GEMM, a second rotary embedding, and heads that do not come
// straight from a section.
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
constexpr StringRef kName = "fuse-rope-kv";

struct Section {
  gpt::FusedGemmOp gemm;
  GemmValue value;
};

/// The value of a section whose split heads are `heads`.
FailureOr<Section> matchSection(Operation *user, Value heads, StringRef what,
                                Refuse refuse) {
  auto split = heads.getDefiningOp<gpt::SplitHeadsOp>();
  auto gemm = split ? split.getX().getDefiningOp<gpt::FusedGemmOp>()
                    : gpt::FusedGemmOp();
  if (!gemm) {
    Operation *op =
        split ? split.getX().getDefiningOp() : heads.getDefiningOp();
    return refuse(user, "expected " + what +
                            " that are the split heads of a section of the "
                            "QKV GEMM, got " +
                            (op ? op->getName().getStringRef()
                                : StringRef("an argument")) +
                            "; it fuses once fuse-qkv does and nothing stands "
                            "between");
  }
  if (gemm.getLanes() || gemm.getArgmax() || !gemm.getResiduals().empty() ||
      gemm->getBlock() != user->getBlock())
    return refuse(user, "expected a GEMM of sections in this block, without "
                        "residuals");
  return Section{gemm, gemmValueOf(cast<OpResult>(split.getX()))};
}

/// One id for every row of the GEMM.
bool hasRowsOf(Value ids, gpt::FusedGemmOp gemm) {
  return cast<RankedTensorType>(ids.getType()).getDimSize(0) ==
         cast<RankedTensorType>(gemm.getX().getType()).getDimSize(0);
}

FailureOr<Section> matchRope(gpt::RopeOp op, Refuse refuse) {
  FailureOr<Section> section =
      matchSection(op, op.getX(), "rotary heads", refuse);
  if (failed(section))
    return failure();
  gpt::FusedGemmOp gemm = section->gemm;
  unsigned index = section->value.section;
  if (gemm.ropeOf(index) || gemm.appendOf(index) != gpt::Append::None ||
      !isIdentity(gemm.getEpilogues()[index]))
    return refuse(op, "expected a section that nothing else is fused into "
                      "yet, got one that is rotated, appended or mapped "
                      "before");
  if (!canHoist(op.getPositions(), gemm) || !hasRowsOf(op.getPositions(), gemm))
    return refuse(op, "expected positions of its rows, known before the GEMM");
  if (Value table = gemm.getRopeTable()) {
    auto made = table.getDefiningOp<gpt::RopeTableOp>();
    if (!made || made.getPositions() != op.getPositions() ||
        made.getRope() != op.getRope())
      return refuse(op, "expected the rotary embedding of the GEMM's other "
                        "section: the same positions, base, pairs, dim and "
                        "scaling");
  }
  return section;
}

/// The accumulator and, rotated, it again.
GemmSection::Yields emitRotation(OpBuilder &b, Location loc,
                                 ArrayRef<Value> args) {
  Value scaled = arith::MulFOp::create(b, loc, args[0], args[2]);
  return {args[0], math::FmaOp::create(b, loc, args[1], args[3], scaled)};
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
    remarkPassed(op, "fusion", kName, "rope in the GEMM's epilogue");
    gpt::FusedGemmOp gemm = section->gemm;
    unsigned index = section->value.section;
    GemmParts parts(gemm);
    hoist(rewriter, op.getPositions(), gemm);
    if (!parts.ropeTable) {
      // As early as the positions are known, so that cse merges the layers'.
      rewriter.setInsertionPointAfterValue(op.getPositions());
      int64_t tokens =
          cast<RankedTensorType>(op.getPositions().getType()).getDimSize(0);
      auto type = RankedTensorType::get({tokens, 2, op.getRope().getDim()},
                                        rewriter.getF32Type());
      parts.ropeTable = gpt::RopeTableOp::create(
          rewriter, placeOf(op), type, op.getPositions(), op.getRope());
      if (op.getRope().getRotary() != op.getRope().getDim())
        parts.rotary = rewriter.getI64IntegerAttr(op.getRope().getRotary());
    }
    parts.sections[index].rope = op.getRope().getPairs();
    parts.sections[index].emit = emitRotation;
    parts.places.push_back(op.getX().getLoc());
    parts.places.push_back(op.getLoc());
    rewriter.setInsertionPoint(gemm);
    gpt::FusedGemmOp made = replaceGemm(rewriter, gemm, parts);
    rewriter.setInsertionPoint(op);
    rewriter.replaceOpWithNewOp<gpt::SplitHeadsOp>(op, op.getType(),
                                                   made.outputsOf(index)[1]);
    rewriter.eraseOp(gemm);
    return success();
  }

  Pass::Statistic &numFused;
};

struct AppendSections {
  gpt::FusedGemmOp gemm;
  GemmValue keys, values;
};

FailureOr<AppendSections> matchAppend(gpt::KVAppendOp op, Refuse refuse) {
  FailureOr<Section> keys = matchSection(op, op.getKeys(), "keys", refuse);
  if (failed(keys))
    return failure();
  FailureOr<Section> values =
      matchSection(op, op.getValues(), "values", refuse);
  if (failed(values))
    return failure();
  if (keys->gemm != values->gemm ||
      keys->value.section == values->value.section)
    return refuse(op, "expected keys and values from two sections of one "
                      "gpt.fused_gemm");
  gpt::FusedGemmOp gemm = keys->gemm;
  if (gemm.getCache())
    return refuse(op, "expected a GEMM that appends to no other cache or "
                      "layer");
  for (Value value : std::initializer_list<Value>{
           op.getCache(), op.getPositions(), op.getSequences()})
    if (!isBefore(value, gemm))
      return refuse(op, "expected cache, positions and sequences known before "
                        "the GEMM");
  if (!hasRowsOf(op.getPositions(), gemm))
    return refuse(op, "expected a position for every row of the GEMM");
  return AppendSections{gemm, keys->value, values->value};
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
    remarkPassed(op, "fusion", kName, "KV append in the GEMM's epilogue");
    gpt::FusedGemmOp gemm = match->gemm;
    GemmParts parts(gemm);
    // The value that is appended stands first; the others stay, if they are
    // used.
    for (auto [value, append] :
         {std::pair(match->keys, gpt::Append::Keys),
          std::pair(match->values, gpt::Append::Values)}) {
      GemmSection &section = parts.sections[value.section];
      section.append = append;
      section.emit = [yield = value.yield, inner = section.emit](
                         OpBuilder &b, Location loc, ArrayRef<Value> args) {
        GemmSection::Yields yields = inner(b, loc, args);
        yields.insert(yields.begin(), yields[yield]);
        return yields;
      };
    }
    parts.places.push_back(op.getKeys().getLoc());
    parts.places.push_back(op.getValues().getLoc());
    parts.places.push_back(op.getLoc());
    parts.cache = op.getCache();
    parts.positions = op.getPositions();
    parts.sequences = op.getSequences();
    parts.layer = op.getLayer();
    rewriter.setInsertionPoint(gemm);
    gpt::FusedGemmOp made = replaceGemm(rewriter, gemm, parts);
    rewriter.replaceOp(op, made.getCacheResult());
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
    dropUnusedResults(getOperation());
    auto missed = [](Operation *op, const Twine &why) -> LogicalResult {
      remarkMissed(op, "fusion", kName, why);
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
