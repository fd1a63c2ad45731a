//===- RespellParts.h - what the rules of Respell.h share -------*- C++ -*-===//
#pragma once
#include "Respell.h"

namespace gptc::fuzz {

/// A graph while a rule works on it.
struct Site {
  mlir::func::FuncOp function;
  Weights &weights;
  Choice &choice;
  mlir::OpBuilder builder;

  mlir::Block &body() { return function.getBody().front(); }

  /// A random op of this kind that `accept` takes; null if there is none.
  template <typename Op>
  Op pick(llvm::function_ref<bool(Op)> accept = [](Op) { return true; }) {
    llvm::SmallVector<Op> found;
    for (Op op : body().template getOps<Op>())
      if (accept(op))
        found.push_back(op);
    return found.empty() ? Op() : choice.in(found);
  }

  /// The same among all ops.
  mlir::Operation *pickOp(llvm::function_ref<bool(mlir::Operation *)> accept) {
    llvm::SmallVector<mlir::Operation *> found;
    for (mlir::Operation &op : body())
      if (accept(&op))
        found.push_back(&op);
    return found.empty() ? nullptr : choice.in(found);
  }

  /// Loads a new weight.
  mlir::Value weight(llvm::StringRef name, std::vector<int64_t> shape,
                     std::vector<double> data);
  /// The tensor of a weight that is loaded as it is; null for other values.
  reference::TensorRef tensorOf(mlir::Value value);
  /// A tensor of the type of `like` whose elements are all `number`.
  mlir::Value splat(mlir::Location loc, double number, mlir::Value like);
  mlir::Value scale(mlir::Location loc, mlir::Value x, double factor);
};

/// Rows of output features, [N, K], whatever the weight's orientation.
std::vector<double> rowsOf(mlir::Value weight, bool inOut, Site &site);

/// Every use of the result of `op` becomes one of `value`.
inline void replace(mlir::Operation *op, mlir::Value value) {
  op->getResult(0).replaceAllUsesWith(value);
  op->erase();
}

/// The only op that uses `value`, once; null if there are others.
mlir::Operation *soleUser(mlir::Value value);

using Rule = bool (*)(Site &);

// RespellLinear.cpp
bool flipWeight(Site &site);
bool mergeLinears(Site &site);
bool shareWeight(Site &site);
bool shareByHead(Site &site);
bool splitPacked(Site &site);
bool packByHead(Site &site);
bool cutLinear(Site &site);
bool biasAfter(Site &site);

// RespellMasks.cpp
bool repeatMask(Site &site);
bool constantMask(Site &site);
bool swapMasks(Site &site);
bool splitMask(Site &site);
bool spellMask(Site &site);
bool comparePositions(Site &site);
bool computeMask(Site &site);
bool maskTwice(Site &site);

// RespellAttention.cpp
bool spellScale(Site &site);
bool moveScale(Site &site);
bool insertScales(Site &site);
bool pushScale(Site &site);
bool spellSoftcap(Site &site);
bool repeatHeads(Site &site);

// RespellOrder.cpp
bool swapOperands(Site &site);
bool regroupSum(Site &site);
bool subtract(Site &site);
bool spellSilu(Site &site);
bool insertDropout(Site &site);
bool insertIdentity(Site &site);
bool copyOp(Site &site);
bool permute(Site &site);

} // namespace gptc::fuzz
