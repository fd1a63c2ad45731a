//===- MergeMasks.cpp - several masks of one attention --------------------===//
#include "Masks.h"

using namespace mlir;
using namespace gptc;

bool gptc::hasOneUser(Operation *op) {
  return op->getNumResults() == 1 &&
         llvm::count_if(op->getUses(), [](OpOperand &use) {
           auto broadcast = dyn_cast<gpt::BroadcastOp>(use.getOwner());
           return !isa<tensor::DimOp>(use.getOwner()) &&
                  !(broadcast && &use == &broadcast.getLikeMutable());
         }) == 1;
}

/// Whether the dimensions of `mask`, the last ones of some scores, serve all of
/// those that `other` has.
static bool covers(RankedTensorType mask, RankedTensorType other) {
  if (mask.getRank() < other.getRank())
    return false;
  auto shape = mask.getShape().take_back(other.getRank());
  return llvm::all_of(llvm::zip(shape, other.getShape()), [](auto sizes) {
    auto [size, its] = sizes;
    return its == 1 || size != 1;
  });
}

/// The one mask that does what both do, made at the builder: the sum of
/// additive masks, the conjunction of boolean ones that fill alike. Null for
/// one of each, since a boolean mask hides a NaN and a number that is added
/// does not, and if neither has all dimensions of both.
static Value mergedMask(RewriterBase &rewriter, gpt::MaskOp inner,
                        gpt::MaskOp outer) {
  Location loc = outer.getLoc();
  Value a = inner.getMask(), b = outer.getMask();
  auto type = [](Value mask) { return cast<RankedTensorType>(mask.getType()); };
  Type element = type(a).getElementType();
  Value wide = covers(type(a), type(b))   ? a
               : covers(type(b), type(a)) ? b
                                          : Value();
  if (!wide || element != type(b).getElementType() ||
      inner.getFillAttr() != outer.getFillAttr())
    return {};
  for (Value *mask : {&a, &b})
    if (type(*mask) != type(wide))
      *mask = gpt::BroadcastOp::create(rewriter, loc, type(wide), *mask, wide);
  if (element.isInteger(1))
    return arith::AndIOp::create(rewriter, loc, a, b);
  return arith::AddFOp::create(rewriter, loc, a, b);
}

unsigned gptc::mergeMasks(RewriterBase &rewriter, Value last) {
  unsigned merges = 0;
  gpt::MaskOp outer; // right behind `op`
  for (Operation *op = last.getDefiningOp(), *next;
       isa_and_nonnull<gpt::MaskOp, gpt::CausalMaskOp, gpt::ScaleOp,
                       gpt::SoftcapOp, gpt::AlibiOp>(op) &&
       hasOneUser(op);
       op = next) {
    next = op->getOperand(0).getDefiningOp();
    auto mask = dyn_cast<gpt::MaskOp>(op);
    Value merged;
    if (mask && outer) {
      rewriter.setInsertionPoint(outer);
      merged = mergedMask(rewriter, mask, outer);
    }
    if (!merged) {
      outer = mask;
      continue;
    }
    ++merges;
    rewriter.modifyOpInPlace(outer,
                             [&] { outer.getMaskMutable().assign(merged); });
    rewriter.replaceOp(mask, mask.getS());
  }
  return merges;
}
