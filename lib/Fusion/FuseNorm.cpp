//===- FuseNorm.cpp - a norm into the GEMM that follows it ----------------===//
//
// Matches:  %n = gpt.rms_norm %x, %g eps 1.0e-5
//           %y = gpt.fused_gemm %n : tensor<?xKxf32> ...
// Produces: %y = gpt.fused_gemm norm(rms %g eps 1.0e-5) %x : tensor<?xKxf32>
// ...
//
// and the same of a layer_norm. Saves the norm's kernel: the threads meet once
// less, and the normalised rows are never written. But with many rows each
// thread normalises all of them, where threads would share those of a kernel.
// So it is done for wide GEMMs only, beside which a norm is little: see
// leastFeaturesOfNorm.
//
// Refuses a norm with another user, which needs the normalised rows too.
//
//===----------------------------------------------------------------------===//
#include "GemmParts.h"
#include "gptc/Fusion/Passes.h"
#include "gptc/Stepping/Remarks.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace gptc {
#define GEN_PASS_DEF_FUSENORM
#include "gptc/Fusion/Passes.h.inc"

namespace {
constexpr StringRef kName = "fuse-norm";

struct Match {
  Operation *norm;
  Value x, gamma, beta;
  gpt::NormKind kind;
  FloatAttr eps;
};

FailureOr<Match> matchNorm(gpt::FusedGemmOp gemm, int64_t leastFeatures,
                           Refuse refuse) {
  if (gemm.getNorm())
    return failure();
  Match match;
  Operation *op = gemm.getX().getDefiningOp();
  if (auto layer = dyn_cast_or_null<gpt::LayerNormOp>(op))
    match = {op,           layer.getX(),      layer.getGamma(), layer.getBeta(),
             layer.kind(), layer.getEpsAttr()};
  else if (auto rms = dyn_cast_or_null<gpt::RmsNormOp>(op))
    match = {op,      rms.getX(),         rms.getGamma(),
             Value(), gpt::NormKind::Rms, rms.getEpsAttr()};
  else
    return failure();
  if (!op->hasOneUse())
    return refuse(op, "expected one GEMM to be the only user of the normalised "
                      "rows; its other users need them as a tensor");
  for (Value vector : {match.gamma, match.beta})
    if (vector && !isWeight(vector))
      return refuse(op, "expected gamma and beta to be weights (a loaded "
                        "ml_program.global)");
  if (int64_t features = gemm.allOutFeatures(); features < leastFeatures)
    return refuse(op, "expected a GEMM of " + Twine(leastFeatures) +
                          " output features or more, got " + Twine(features) +
                          ": every thread would normalise all rows, which "
                          "takes longer than to share them");
  return match;
}

struct FuseNormPattern : OpRewritePattern<gpt::FusedGemmOp> {
  FuseNormPattern(MLIRContext *context, int64_t leastFeatures,
                  Pass::Statistic &numFused)
      : OpRewritePattern(context), leastFeatures(leastFeatures),
        numFused(numFused) {}

  LogicalResult matchAndRewrite(gpt::FusedGemmOp gemm,
                                PatternRewriter &rewriter) const override {
    FailureOr<Match> match =
        matchNorm(gemm, leastFeatures, [&](Operation *op, const Twine &why) {
          return rewriter.notifyMatchFailure(op, why);
        });
    if (failed(match))
      return failure();
    ++numFused;
    remarkPassed(match->norm, "fusion", kName,
                 "the norm into the prologue of the GEMM");
    GemmParts parts(gemm);
    parts.x = match->x;
    parts.norm = gpt::NormKindAttr::get(gemm.getContext(), match->kind);
    parts.gamma = match->gamma;
    parts.beta = match->beta;
    parts.eps = match->eps;
    parts.places.push_back(match->norm->getLoc());
    replaceGemm(rewriter, gemm, parts);
    rewriter.eraseOp(gemm);
    rewriter.eraseOp(match->norm);
    return success();
  }

  int64_t leastFeatures;
  Pass::Statistic &numFused;
};

struct FuseNorm : impl::FuseNormBase<FuseNorm> {
  using FuseNormBase::FuseNormBase;

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FuseNormPattern>(&getContext(), leastFeatures, numFused);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    llvm::SmallPtrSet<Operation *, 8> told; // several GEMMs may share a norm
    getOperation()->walk([&](gpt::FusedGemmOp gemm) {
      (void)matchNorm(gemm, leastFeatures,
                      [&](Operation *op, const Twine &why) -> LogicalResult {
                        if (told.insert(op).second)
                          remarkMissed(op, "fusion", kName, why);
                        return failure();
                      });
    });
  }
};
} // namespace
} // namespace gptc
