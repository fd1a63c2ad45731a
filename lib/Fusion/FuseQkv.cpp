//===- FuseQkv.cpp - one GEMM for queries, keys and values ----------------===//
//
// Matches:  %q = gpt.linear %n, %wq ; %k = gpt.linear %n, %wk
//           %v = gpt.linear %n, %wv
//           or %q, %k, %v = gpt.split (gpt.linear %n, %wqkv)
//           or %q, %k, %v = gpt.split (gpt.split_heads (gpt.linear %n, %wqkv))
//           or some of each, that feed q, k and v of a product of q and k, a
//           softmax and a product with v, through split_heads, merge_heads,
//           rope, a norm of the heads, a scale or the KV cache
// Produces: %q, %k, %v = gpt.fused_gemm %n sections of %wq, %wk, %wv
//           (of a packed weight: its tensor.extract_slice, or its gpt.head_part
//           where it is packed head by head)
//
// Widths (GQA), biases and weight orientations may differ. What else a packed
// projection computes becomes a section too. Where k and v are of one
// activation and q of another (cross attention), the GEMM is that of k and v.
// Refuses linears of other activations, and a packed linear that is used beside
// its split.
//
//===----------------------------------------------------------------------===//
#include "GemmParts.h"
#include "gptc/Fusion/Passes.h"
#include "gptc/Stepping/Remarks.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace gptc {
#define GEN_PASS_DEF_FUSEQKV
#include "gptc/Fusion/Passes.h.inc"

namespace {
constexpr StringRef kName = "fuse-qkv";

/// Where a q, k or v of attention was computed.
Value trace(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    Value source;
    if (auto read = dyn_cast<gpt::KVReadOp>(op)) {
      auto append = read.getCache().getDefiningOp<gpt::KVAppendOp>();
      if (!append || append.getLayer() != read.getLayer())
        return value;
      source = value == read.getKeys() ? append.getKeys() : append.getValues();
    } else if (isa<gpt::RopeOp, gpt::SplitHeadsOp, gpt::MergeHeadsOp,
                   gpt::LayerNormOp, gpt::RmsNormOp>(op)) {
      source = op->getOperand(0);
    } else if (!matchScale(value, source)) {
      // A runtime scale: q times one number for each query.
      if (!isa<arith::MulFOp>(op) ||
          !op->getOperand(1).getDefiningOp<gpt::BroadcastOp>())
        return value;
      source = op->getOperand(0);
    }
    value = source;
  }
  return value;
}

/// The product of queries and keys that the softmax of these scores is over,
/// whatever stands between.
gpt::MatmulOp findScores(Value value, unsigned depth = 0) {
  Operation *op = value.getDefiningOp();
  if (!op || depth > 16)
    return {};
  if (auto matmul = dyn_cast<gpt::MatmulOp>(op))
    return matmul.getTransposeB() ? matmul : gpt::MatmulOp();
  if (!isa<gpt::ScaleOp, gpt::SoftcapOp, gpt::AlibiOp, gpt::MaskOp,
           gpt::CausalMaskOp, arith::SelectOp, arith::AddFOp, arith::SubFOp,
           arith::MulFOp, arith::DivFOp, arith::NegFOp, math::TanhOp>(op))
    return {};
  for (Value operand : op->getOperands())
    if (gpt::MatmulOp scores = findScores(operand, depth + 1))
      return scores;
  return {};
}

/// A projection: of its own, or a part of a packed one.
struct Projection {
  gpt::LinearOp linear;
  gpt::SplitOp split; // of the packed one, else null
  Value heads;        // of the packed one, if it is split into heads first
  unsigned part = 0;

  /// Features of the packed projection, of one head if it is split into heads.
  PackedPart place(unsigned i) {
    auto width = [](Value value) {
      return cast<RankedTensorType>(value.getType()).getShape().back();
    };
    int64_t from = 0;
    for (unsigned j = 0; j < i; ++j)
      from += width(split.getResult(j));
    return {from, width(split.getResult(i)), width(split.getX())};
  }
};

struct Qkv {
  /// q (but in cross attention), k, v, then what else is packed.
  SmallVector<Projection> projections;
  gpt::LinearOp first; // in the block
  bool crosses = false;
};

FailureOr<Projection> matchProjection(gpt::MatmulOp output, Value source,
                                      StringRef name, Refuse refuse) {
  Projection result;
  Operation *op = source.getDefiningOp();
  if (auto split = dyn_cast_or_null<gpt::SplitOp>(op)) {
    result.split = split;
    result.part = cast<OpResult>(source).getResultNumber();
    Value packed = split.getX();
    if (auto heads = packed.getDefiningOp<gpt::SplitHeadsOp>()) {
      result.heads = packed;
      packed = heads.getX();
    }
    result.linear = packed.getDefiningOp<gpt::LinearOp>();
    if (!result.linear)
      return refuse(split, "expected the split of a gpt.linear, or of the "
                           "split heads of one");
    if (!result.linear->hasOneUse() || !split.getX().hasOneUse())
      return refuse(result.linear,
                    "expected the split to be the only user of the packed "
                    "projection; its other users need it as one tensor");
    if (!isWhole(result.linear.getWeight()) ||
        (result.linear.getBias() && !isWhole(result.linear.getBias())))
      return refuse(result.linear,
                    "expected a packed weight that is no part of another");
  } else {
    result.linear = dyn_cast_or_null<gpt::LinearOp>(op);
    if (!result.linear)
      return refuse(
          op ? op : output.getOperation(),
          "expected " + name +
              " from a gpt.linear, through split_heads, rope, "
              "norms and scales only, got " +
              (op ? op->getName().getStringRef() : StringRef("an argument")));
  }
  if (failed(isFusable(result.linear, refuse)))
    return failure();
  return result;
}

FailureOr<Qkv> matchQkv(gpt::MatmulOp output, Refuse refuse) {
  auto softmax = output.getA().getDefiningOp<gpt::SoftmaxOp>();
  gpt::MatmulOp scores = softmax ? findScores(softmax.getX()) : gpt::MatmulOp();
  if (!scores)
    return refuse(output, "expected a gpt.matmul of queries and keys with "
                          "transpose_b before the softmax");
  Value sources[] = {trace(scores.getA()), trace(scores.getB()),
                     trace(output.getB())};
  if (sources[0] == sources[1] || sources[1] == sources[2] ||
      sources[0] == sources[2])
    return refuse(output, "expected three projections for q, k and v, got one "
                          "that serves as two of them");
  Qkv result;
  constexpr StringRef names[] = {"q", "k", "v"};
  for (auto [source, name] : llvm::zip(sources, names)) {
    auto projection = matchProjection(output, source, name, refuse);
    if (failed(projection))
      return failure();
    result.projections.push_back(*projection);
  }
  Value memory = result.projections[1].linear.getX();
  result.crosses = result.projections[0].linear.getX() != memory &&
                   result.projections[2].linear.getX() == memory;
  if (result.crosses)
    result.projections.erase(result.projections.begin());
  // What else a packed projection computes.
  for (Projection p : SmallVector<Projection>(result.projections))
    for (unsigned i = 0; p.split && i < p.split.getNumResults(); ++i)
      if (llvm::none_of(result.projections, [&](const Projection &other) {
            return other.split == p.split && other.part == i;
          })) {
        Projection rest = p;
        rest.part = i;
        result.projections.push_back(rest);
      }

  result.first = result.projections[0].linear;
  for (Projection &p : result.projections) {
    if (p.linear.getX() != result.first.getX())
      return refuse(p.linear, "expected the activation of the q projection, "
                              "got another: one GEMM reads one activation");
    if (p.linear->getBlock() != result.first->getBlock())
      return refuse(p.linear, "expected the block of the q projection");
    if (p.linear->isBeforeInBlock(result.first))
      result.first = p.linear;
  }
  for (Projection &p : result.projections)
    if (!canHoist(p.linear.getWeight(), result.first) ||
        (p.linear.getBias() && !canHoist(p.linear.getBias(), result.first)))
      return refuse(p.linear, "expected a weight known before the first of the "
                              "three projections; load it before");
  return result;
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
    bool packed = llvm::any_of(qkv->projections, [](const Projection &p) {
      return static_cast<bool>(p.split);
    });
    remarkPassed(output, "fusion", kName,
                 packed ? "packed projection in " +
                              Twine(qkv->projections.size()) + " sections"
                 : qkv->crosses
                     ? Twine("keys and values in one GEMM, queries being of "
                             "another activation")
                     : Twine("three projections in one GEMM"));
    GemmParts parts;
    parts.x = qkv->first.getX();
    for (Projection &p : qkv->projections) {
      parts.places.push_back(p.linear.getLoc());
      if (p.split)
        parts.places.push_back(p.split.getLoc());
      hoist(rewriter, p.linear.getWeight(), qkv->first);
      if (p.linear.getBias())
        hoist(rewriter, p.linear.getBias(), qkv->first);
    }
    rewriter.setInsertionPoint(qkv->first);
    for (Projection &p : qkv->projections) {
      gpt::LinearOp linear = p.linear;
      GemmWeight weight{linear.getWeight(), linear.getBias(),
                        linear.getInOut()};
      if (p.split)
        weight = partOf(rewriter, linear.getLoc(), weight, p.place(p.part));
      parts.addSection(weight);
    }
    gpt::FusedGemmOp gemm = parts.create(rewriter);
    llvm::SmallSetVector<Operation *, 8> dead;
    for (auto [i, p] : llvm::enumerate(qkv->projections)) {
      Value section = gemm.outputOf(i);
      if (!p.split) {
        rewriter.replaceAllUsesWith(p.linear.getResult(), section);
      } else {
        Value part = p.split.getResult(p.part);
        if (p.heads) {
          rewriter.setInsertionPoint(p.split);
          section = gpt::SplitHeadsOp::create(rewriter, p.split.getLoc(),
                                              part.getType(), section);
        }
        rewriter.replaceAllUsesWith(part, section);
        dead.insert(p.split);
        if (p.heads)
          dead.insert(p.heads.getDefiningOp());
      }
    }
    for (Projection &p : qkv->projections)
      dead.insert(p.linear.getOperation());
    for (Operation *op : dead)
      rewriter.eraseOp(op);
    return success();
  }

  Pass::Statistic &numFused;
};

/// Whether the projections of an attention are one GEMM, or those of another
/// activation than that of the queries are.
bool isFused(gpt::MatmulOp output, gpt::SoftmaxOp softmax) {
  gpt::MatmulOp scores = findScores(softmax.getX());
  if (!scores)
    return false;
  auto gemm = trace(output.getB()).getDefiningOp<gpt::FusedGemmOp>();
  if (!gemm || trace(scores.getB()).getDefiningOp() != gemm)
    return false;
  Value q = trace(scores.getA());
  auto linear = q.getDefiningOp<gpt::LinearOp>();
  return q.getDefiningOp() == gemm || (linear && linear.getX() != gemm.getX());
}

struct FuseQkv : impl::FuseQkvBase<FuseQkv> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FuseQkvPattern>(&getContext(), numFused);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    getOperation()->walk([](gpt::MatmulOp output) {
      auto softmax = output.getA().getDefiningOp<gpt::SoftmaxOp>();
      if (!softmax || isFused(output, softmax))
        return;
      // Attention over tensors that are not projected here is no candidate.
      gpt::MatmulOp scores = findScores(softmax.getX());
      if (scores &&
          llvm::all_of(
              ArrayRef<Value>{scores.getA(), scores.getB(), output.getB()},
              [](Value v) { return isa<BlockArgument>(trace(v)); }))
        return;
      (void)matchQkv(output, [](Operation *op, const Twine &why) {
        remarkMissed(op, "fusion", kName, why);
        return failure();
      });
    });
  }
};
} // namespace
} // namespace gptc
