//===- GptFolds.cpp - folds -----------------------------------------------===//
//
// Only folds that keep every bit. Dropout is not folded: a pass removes it, so
// that the printed graph keeps what the training graph said.
//
//===----------------------------------------------------------------------===//
#include "gptc/Dialect/Gpt/Gpt.h"

using namespace mlir;
using namespace gptc::gpt;

OpFoldResult SplitHeadsOp::fold(FoldAdaptor) {
  auto merge = getX().getDefiningOp<MergeHeadsOp>();
  if (merge && merge.getX().getType() == getType())
    return merge.getX();
  return {};
}

OpFoldResult MergeHeadsOp::fold(FoldAdaptor) {
  auto split = getX().getDefiningOp<SplitHeadsOp>();
  if (split && split.getX().getType() == getType())
    return split.getX();
  return {};
}
