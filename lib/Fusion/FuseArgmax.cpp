//===- FuseArgmax.cpp - the argmax of an LM head into its GEMM ------------===//
//
// Matches:  %y = gpt.fused_gemm %x ... -> tensor<?xNxf32>
//           %t = gpt.argmax %y : tensor<?xNxf32> -> tensor<?xi32>
// Produces: %v, %c = gpt.fused_gemm %x argmax 128 ...
//                    -> (tensor<?xPxf32>, tensor<?xPxi32>)
//           %t = gpt.merge_argmax %v, %c
//
// The GEMM keeps the largest number of each block of columns and where it is;
// what threads found in their blocks is brought together by a kernel of its
// own. The logits are never written.
//
// Refuses logits that something else needs: they are written anyhow.
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
#define GEN_PASS_DEF_FUSEARGMAX
#include "gptc/Fusion/Passes.h.inc"

namespace {
constexpr StringRef kName = "fuse-argmax";

FailureOr<gpt::FusedGemmOp> matchArgmax(gpt::ArgmaxOp op, Refuse refuse) {
  gpt::FusedGemmOp gemm = gemmOf(op.getX(), op);
  if (!gemm)
    return refuse(op, "expected the argmax of a GEMM's value"); // no candidate
  if (gemm.numSections() != 1 || !isPlain(gemm))
    return refuse(op, "expected a GEMM of one section, or lanes, without rope "
                      "and KV append before the argmax");
  if (gemm.numYields(0) != 1)
    return refuse(op, "expected the argmax to be all that is made of the GEMM, "
                      "got a GEMM of " +
                          Twine(gemm.numYields(0)) +
                          " values, whose numbers are written anyhow");
  for (OpOperand &use : op.getX().getUses())
    if (isLike(use))
      return refuse(use.getOwner(),
                    "expected no sizes taken of the GEMM's numbers, which the "
                    "argmax in its epilogue does not write; give other values "
                    "of these sizes after 'like'");
  if (!op.getX().hasOneUse())
    return refuse(op, "expected the argmax to be the only user of the GEMM's "
                      "numbers; its other users need them written");
  return gemm;
}

struct FuseArgmaxPattern : OpRewritePattern<gpt::ArgmaxOp> {
  FuseArgmaxPattern(MLIRContext *context, Pass::Statistic &numFused)
      : OpRewritePattern(context), numFused(numFused) {}

  LogicalResult matchAndRewrite(gpt::ArgmaxOp op,
                                PatternRewriter &rewriter) const override {
    FailureOr<gpt::FusedGemmOp> gemm =
        matchArgmax(op, [&](Operation *at, const Twine &why) {
          return rewriter.notifyMatchFailure(at, why);
        });
    if (failed(gemm))
      return failure();
    ++numFused;
    remarkPassed(op, "fusion", kName, "argmax in the GEMM's epilogue");
    GemmParts parts(*gemm);
    parts.argmax = rewriter.getI64IntegerAttr(columnsOfArgmaxBlock);
    parts.places.push_back(op.getLoc());
    rewriter.setInsertionPoint(*gemm);
    gpt::FusedGemmOp made = parts.create(rewriter);
    rewriter.setInsertionPoint(op);
    rewriter.replaceOpWithNewOp<gpt::MergeArgmaxOp>(
        op, op.getType(), made.getOutputs()[0], made.getOutputs()[1]);
    rewriter.eraseOp(*gemm);
    return success();
  }

  Pass::Statistic &numFused;
};

struct FuseArgmax : impl::FuseArgmaxBase<FuseArgmax> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FuseArgmaxPattern>(&getContext(), numFused);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    getOperation()->walk([](gpt::ArgmaxOp op) {
      if (gemmOf(op.getX(), op))
        (void)matchArgmax(op,
                          [](Operation *at, const Twine &why) -> LogicalResult {
                            remarkMissed(at, "fusion", kName, why);
                            return failure();
                          });
    });
  }
};
} // namespace
} // namespace gptc
