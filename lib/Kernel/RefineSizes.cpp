//===- RefineSizes.cpp - sizes that a graph leaves open but has -----------===//
//
// Matches:  func @f(%s: tensor<2x?x?xf32>, %m: tensor<3xf32>)
//             gpt.mask %s, %m
// Produces: func @f(%s: tensor<2x?x3xf32>, %m: tensor<3xf32>)
//
// Sizes agree if they are equal or one of them is `?`; a static one is then
// what the other must be when it runs. As a part of the type it is asked for at
// the package's edge, and every kernel is made for it.
//
// Refuses two static sizes of one dimension, and heads that groups share of
// which neither number is known.
//
//===----------------------------------------------------------------------===//
#include "gptc/Kernel/DimAnalysis.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::gpt;

/// Heads of a product with groups must be known: kernels read head h / groups.
static LogicalResult checkGroups(Operation *op, DimClasses &classes) {
  Value a, b;
  int64_t groups = 1;
  if (auto matmul = dyn_cast<MatmulOp>(op)) {
    a = matmul.getA();
    b = matmul.getB();
    groups = matmul.getGroups();
  } else if (auto attention = dyn_cast<FlashAttentionOp>(op)) {
    a = attention.getQ();
    b = attention.getK();
    groups = attention.getGroups();
  }
  if (!b || groups == 1)
    return success();
  for (Value value : {a, b}) {
    auto type = cast<RankedTensorType>(value.getType());
    if (!classes.staticSize(value, type.getRank() - 3))
      return op->emitOpError("expected a static number of heads beside groups ")
             << groups << ", got " << type;
  }
  return success();
}

LogicalResult gptc::refineSizes(func::FuncOp entry) {
  DimClasses classes;
  Block &body = entry.getBody().front();
  // Until sizes that follow from others are through: a rule may look at a size
  // that a later op gives.
  auto countKnown = [&] {
    int64_t known = 0;
    auto count = [&](Value value) {
      if (auto type = dyn_cast<RankedTensorType>(value.getType()))
        for (int64_t axis = 0; axis < type.getRank(); ++axis)
          known += classes.staticSize(value, axis).has_value();
    };
    llvm::for_each(body.getArguments(), count);
    for (Operation &op : body)
      llvm::for_each(op.getResults(), count);
    return known;
  };
  for (int64_t before = -1, known = 0; known != before;) {
    before = known;
    for (Operation &op : body) {
      classes.addRulesOf(&op);
      if (auto conflict = classes.conflict)
        return op.emitOpError("expected sizes that agree, got ")
               << conflict->first << " and " << conflict->second
               << " for dimension " << conflict->axis << " of "
               << conflict->value.getType();
    }
    known = countKnown();
  }
  for (Operation &op : body)
    if (failed(checkGroups(&op, classes)))
      return failure();

  auto refine = [&](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type || type.hasStaticShape())
      return;
    SmallVector<int64_t> shape(type.getShape());
    for (auto [axis, extent] : llvm::enumerate(shape))
      extent = classes.staticSize(value, axis).value_or(extent);
    value.setType(type.clone(shape));
  };
  llvm::for_each(body.getArguments(), refine);
  for (Operation &op : body)
    llvm::for_each(op.getResults(), refine);
  entry.setFunctionType(
      FunctionType::get(entry.getContext(), body.getArgumentTypes(),
                        body.getTerminator()->getOperandTypes()));
  return success();
}
