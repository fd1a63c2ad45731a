//===- SimplifyMasks.cpp - the masks of one attention ---------------------===//
//
// Matches:  %m = gpt.mask %s, (a constant, or positions that are compared)
// Produces: %m = gpt.causal_mask %s, if that is what the mask says
//           (ConstantMask.cpp, PositionMask.cpp)
//
// A mask that says the window alone becomes a causal_mask of that window where
// another mask of the attention is causal.
//
//===----------------------------------------------------------------------===//
#include "Masks.h"
#include "gptc/Stepping/Elementwise.h"

using namespace mlir;
using namespace gptc;

/// Whether a key that `scores` hide by a causal mask is -inf in them.
static bool isCausal(Value scores) {
  while (Operation *op = scores.getDefiningOp()) {
    if (isa<gpt::CausalMaskOp>(op))
      return true;
    // What keeps -inf.
    auto scale = dyn_cast<gpt::ScaleOp>(op);
    auto mask = dyn_cast<gpt::MaskOp>(op);
    bool keeps = (scale && factorOf(scale) > 0) || isa<gpt::AlibiOp>(op) ||
                 (mask && getElementTypeOrSelf(mask.getMask()).isInteger(1) &&
                  !(mask.getFill() && mask.getFill()->isFinite()));
    if (!keeps)
      return false;
    scores = op->getOperand(0);
  }
  return false;
}

unsigned gptc::simplifyMasks(RewriterBase &rewriter,
                             MutableArrayRef<Operation *> masks, bool only) {
  unsigned numChanged = 0;
  for (bool causal : {false, true})
    for (auto [n, op] : llvm::enumerate(masks)) {
      auto mask = dyn_cast_if_present<gpt::MaskOp>(op);
      if (!mask || (causal && !isCausal(mask.getS()) &&
                    llvm::none_of(masks.drop_front(n + 1),
                                  llvm::IsaAndPresentPred<gpt::CausalMaskOp>)))
        continue;
      rewriter.setInsertionPoint(mask);
      Value simpler = constantMask(rewriter, mask, only);
      if (!simpler)
        simpler = positionMask(rewriter, mask, only, causal);
      if (!simpler)
        continue;
      op = simpler == mask.getS() ? nullptr : simpler.getDefiningOp();
      rewriter.replaceOp(mask, simpler);
      ++numChanged;
    }
  return numChanged;
}
