//===- MergeMasks.cpp - several masks of one attention --------------------===//
#include "Masks.h"
#include <cmath>

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

/// The one mask that hides what both hide, made at the builder; nothing if
/// neither has all dimensions of both, or if they fill with numbers that do not
/// go together. `adjacent`: no causal mask stands between.
static Value mergedMask(RewriterBase &rewriter, gpt::MaskOp inner,
                        gpt::MaskOp outer, bool adjacent) {
  Location loc = outer.getLoc();
  Value a = inner.getMask(), b = outer.getMask();
  auto type = [](Value mask) { return cast<RankedTensorType>(mask.getType()); };
  auto isBoolean = [&](Value mask) {
    return type(mask).getElementType().isInteger(1);
  };
  bool filled = false;
  for (gpt::MaskOp mask : {inner, outer})
    filled |= mask.getFill() && mask.getFill()->isFinite();
  if (filled && (!adjacent || inner.getFillAttr() != outer.getFillAttr()))
    return {};
  Value wide = covers(type(a), type(b))   ? a
               : covers(type(b), type(a)) ? b
                                          : Value();
  if (!wide)
    return {};
  auto expanded = [&](Value value) -> Value {
    auto wanted = type(wide).clone(type(value).getElementType());
    if (type(value) == wanted)
      return value;
    return gpt::BroadcastOp::create(rewriter, loc, wanted, value, wide);
  };
  a = expanded(a);
  b = expanded(b);
  if (isBoolean(a) && isBoolean(b))
    return arith::AndIOp::create(rewriter, loc, a, b);
  if (!isBoolean(a) && !isBoolean(b))
    return arith::AddFOp::create(rewriter, loc, a, b);
  if (isBoolean(b))
    std::swap(a, b);
  auto number = RankedTensorType::get({}, rewriter.getF32Type());
  Value hidden = arith::ConstantOp::create(
      rewriter, loc,
      DenseElementsAttr::get(number, -std::numeric_limits<float>::infinity()));
  return arith::SelectOp::create(rewriter, loc, a, b, expanded(hidden));
}

unsigned gptc::mergeMasks(RewriterBase &rewriter, Value last) {
  unsigned merges = 0;
  gpt::MaskOp outer;
  bool adjacent = true;
  for (Operation *op = last.getDefiningOp(); op && hasOneUser(op);) {
    Operation *next =
        op->getNumOperands() ? op->getOperand(0).getDefiningOp() : nullptr;
    if (auto mask = dyn_cast<gpt::MaskOp>(op)) {
      Value merged;
      if (outer) {
        rewriter.setInsertionPoint(outer);
        merged = mergedMask(rewriter, mask, outer, adjacent);
      }
      if (merged) {
        ++merges;
        rewriter.modifyOpInPlace(outer, [&] {
          outer.getMaskMutable().assign(merged);
          if (!cast<RankedTensorType>(merged.getType())
                   .getElementType()
                   .isInteger(1))
            outer.removeFillAttr();
        });
        rewriter.replaceOp(mask, mask.getS());
      } else {
        outer = mask;
        adjacent = true;
      }
    } else if (isa<gpt::CausalMaskOp>(op)) {
      adjacent = false;
    } else {
      outer = {};
    }
    op = next;
  }
  return merges;
}
