//===- EpilogueLanes.cpp - two GEMMs that meet as lanes of one ------------===//
//
// Matches:  %h = arith.mulf (silu (gemm %x, %wg)), (gemm %x, %wu)
// Produces: %h = gpt.fused_gemm lanes %x, %wg, %wu { mulf (silu %g), %u }
//
// A part of fuse-epilogue (FuseEpilogue.cpp).
//
//===----------------------------------------------------------------------===//
#include "Epilogue.h"
#include "GemmParts.h"
#include "gptc/Stepping/Elementwise.h"
#include "gptc/Stepping/Remarks.h"

using namespace mlir;
using namespace gptc;

gpt::FusedGemmOp gptc::gemmOf(Value value, Operation *user) {
  auto gemm = value.getDefiningOp<gpt::FusedGemmOp>();
  return gemm && !gemm.getArgmax() && gemm->getBlock() == user->getBlock() &&
                 value != gemm.getCacheResult()
             ? gemm
             : gpt::FusedGemmOp();
}

bool gptc::isPlain(gpt::FusedGemmOp gemm) {
  return !gemm.getCache() && !gemm.getRopeTable();
}

Value gptc::rowOf(Value value) {
  auto broadcast = value.getDefiningOp<gpt::BroadcastOp>();
  if (!broadcast)
    return {};
  auto x = cast<RankedTensorType>(broadcast.getX().getType());
  auto type = cast<RankedTensorType>(value.getType());
  return type.getRank() == 2 && x.getRank() == 1 && !x.isDynamicDim(0) &&
                 x.getDimSize(0) == type.getDimSize(1)
             ? broadcast.getX()
             : Value();
}

Operation *gptc::userBefore(gpt::FusedGemmOp gemm, Operation *op,
                            Operation *except) {
  for (OpOperand &use : gemm->getUses()) {
    Operation *user = use.getOwner();
    if (isa<gpt::BroadcastOp>(user) && isLike(use) &&
        rowOf(user->getResult(0)) &&
        llvm::all_of(user->getUsers(),
                     [&](Operation *other) { return other == op; }))
      continue;
    if (user != except && user != op &&
        (user->getBlock() != op->getBlock() || user->isBeforeInBlock(op)))
      return user;
  }
  return nullptr;
}

namespace {
/// Whether both GEMMs make the same of equal rows before they multiply.
bool haveSameNorm(gpt::FusedGemmOp a, gpt::FusedGemmOp b) {
  return a.getNormAttr() == b.getNormAttr() && a.getGamma() == b.getGamma() &&
         a.getBeta() == b.getBeta() && a.getEpsAttr() == b.getEpsAttr();
}

/// Two GEMMs of one activation, or two sections of one GEMM, that meet in an
/// elementwise op; nothing else does.
struct Lanes {
  gpt::FusedGemmOp first, second; // in the block; second null: sections
  Operation *place = nullptr;
};

FailureOr<Lanes> matchLanes(Operation *op, Refuse refuse) {
  if (!isElementwise(op) || op->getNumOperands() != 2)
    return refuse(op, "expected a binary elementwise op"); // no candidate
  Lanes result;
  result.first = gemmOf(op->getOperand(0), op);
  result.second = gemmOf(op->getOperand(1), op);
  if (!result.first || !result.second)
    return refuse(op, "expected two GEMMs"); // no candidate
  if (result.first == result.second) {
    gpt::FusedGemmOp gemm = result.first;
    auto section = [&](unsigned i) {
      return gemmValueOf(cast<OpResult>(op->getOperand(i))).section;
    };
    if (gemm.numSections() != 2 || !isPlain(gemm) || section(0) == section(1))
      return refuse(op,
                    "expected the two sections of one GEMM"); // no candidate
    result.place = gemm;
    result.second = {};
    return result;
  }
  for (gpt::FusedGemmOp gemm : {result.first, result.second})
    if (gemm.numSections() != 1 || !isPlain(gemm) || gemm.getLanes())
      return refuse(op, "expected two GEMMs of one weight"); // no candidate
  if (result.first.getX() != result.second.getX() ||
      !haveSameNorm(result.first, result.second))
    return refuse(op,
                  "expected two GEMMs of the same activation"); // no candidate
  if (result.second->isBeforeInBlock(result.first))
    std::swap(result.first, result.second);
  result.place = result.first;
  if (llvm::all_of(result.second->getOperands(),
                   [&](Value value) { return canHoist(value, result.first); }))
    return result;
  if (userBefore(result.first, result.second, result.second))
    return refuse(op, "expected the weights of both GEMMs before the "
                      "first"); // no candidate
  // A residual of the second that comes from the first is no lane.
  if (llvm::is_contained(result.first->getUsers(),
                         result.second.getOperation()))
    return refuse(op, "expected two GEMMs that do not depend on each "
                      "other"); // no candidate
  result.place = result.second;
  return result;
}

struct LanesPattern : ElementwisePattern {
  using ElementwisePattern::ElementwisePattern;
  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    FailureOr<Lanes> match =
        matchLanes(op, [&](Operation *at, const Twine &why) {
          return rewriter.notifyMatchFailure(at, why);
        });
    if (failed(match))
      return failure();
    ++numFused;
    remarkPassed(op, "fusion", epilogueFusion,
                 match->second ? "two GEMMs as lanes of one"
                               : "two sections of a GEMM as lanes");
    GemmParts parts(match->first);
    SmallVector<gpt::FusedGemmOp> gemms{match->first};
    if (match->second) {
      gemms.push_back(match->second);
      GemmParts other(match->second);
      parts.weights.append(other.weights);
      parts.sections.append(other.sections);
      parts.residuals.append(other.residuals);
      parts.places.append(other.places);
    }
    // Accumulators, then residuals: those of the first, of the second.
    size_t counts[] = {match->first.getResiduals().size(),
                       match->second ? match->second.getResiduals().size() : 0};
    GemmSection all;
    all.emit = [&, sections = parts.sections](OpBuilder &b, Location loc,
                                              ArrayRef<Value> args) {
      GemmSection::Yields yields;
      size_t residual = 2;
      for (auto [i, section] : llvm::enumerate(sections)) {
        SmallVector<Value> own{args[i]};
        llvm::append_range(own, args.slice(residual, counts[i]));
        residual += counts[i];
        llvm::append_range(yields, section.emit(b, loc, own));
      }
      return yields;
    };
    parts.lanes = true;
    parts.sections = {all};
    if (match->second && match->place == match->first.getOperation())
      for (Value value : match->second->getOperands())
        if (value != match->first.getX())
          hoist(rewriter, value, match->first);
    rewriter.setInsertionPoint(match->place);
    gpt::FusedGemmOp made = parts.create(rewriter);
    unsigned next = 0;
    for (gpt::FusedGemmOp gemm : gemms)
      for (Value output : gemm.getOutputs())
        rewriter.replaceAllUsesWith(output, made.getOutputs()[next++]);
    for (gpt::FusedGemmOp gemm : gemms)
      rewriter.eraseOp(gemm);
    return success();
  }
};
} // namespace

void gptc::addLanesPattern(RewritePatternSet &patterns, unsigned benefit,
                           Pass::Statistic &numFused) {
  patterns.add<LanesPattern>(patterns.getContext(), benefit, numFused);
}
