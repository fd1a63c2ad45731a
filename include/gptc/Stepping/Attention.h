//===- Attention.h - recognise attention in the graph -----------*- C++ -*-===//
//
// The one place that knows how a graph spells attention; Stepping and Fusion
// ask it.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "gptc/Dialect/Gpt/Gpt.h"

namespace gptc {

/// Says why something was refused, at the op that was not as expected; returns
/// failure. Patterns pass notifyMatchFailure, remarks pass a recorder.
using Refuse = llvm::function_ref<llvm::LogicalResult(mlir::Operation *,
                                                      const llvm::Twine &)>;

/// output = softmax(mask(causal(scale * q k^T))) v, every value between used
/// once. q [H, Sq, D], k and v [H / groups, Sk, D].
struct Attention {
  mlir::Value q, k, v;
  gpt::MatmulOp scores, output;
  gpt::SoftmaxOp softmax;
  gpt::CausalMaskOp causal; // null if every key is visible
  gpt::MaskOp mask;         // null if there is none
  double scale = 1.0;       // of q and of the product together
  int64_t groups = 1;

  /// The ops from the product of q and k to the softmax, in block order.
  llvm::SmallVector<mlir::Operation *, 4> chain;
};

/// The attention that ends in `output`, the product of weights and values.
/// Scale may be gpt.scale, or arith.mulf / arith.divf with a splat constant, at
/// the product or at q. Nothing is changed.
llvm::FailureOr<Attention> matchAttention(gpt::MatmulOp output, Refuse refuse);

/// The factor f if `value` is f times *source and nothing else.
std::optional<double> matchScale(mlir::Value value, mlir::Value &source);

/// Where `op` is written, without the name of its result: the place of an op
/// that a pass makes beside it.
inline mlir::Location placeOf(mlir::Operation *op) {
  auto named = mlir::dyn_cast<mlir::NameLoc>(op->getLoc());
  return named ? named.getChildLoc() : op->getLoc();
}

} // namespace gptc
