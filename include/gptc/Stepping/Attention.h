//===- Attention.h - recognise attention in the graph -----------*- C++ -*-===//
//
// The one place that knows how a graph says attention; Stepping and Fusion ask
// it. gpt-canonicalize-attention has brought other spellings into this one.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "gptc/Dialect/Gpt/Gpt.h"

namespace gptc {

/// Says why something was refused, at the op that was not as expected; returns
/// failure. Patterns pass notifyMatchFailure, remarks pass a recorder.
using Refuse = llvm::function_ref<llvm::LogicalResult(mlir::Operation *,
                                                      const llvm::Twine &)>;

/// output = softmax(causal(masks(alibi(softcap(scale * q k^T))))) v, every
/// value between used once. q [..., H, Sq, D], k and v [..., H / groups, Sk,
/// D].
struct Attention {
  mlir::Value q, k, v;
  gpt::MatmulOp scores, output;
  gpt::SoftmaxOp softmax;
  double scale = 1.0;
  std::optional<double> softcap;
  llvm::SmallVector<double> slopes;        // of alibi; empty: none
  llvm::SmallVector<gpt::MaskOp, 1> masks; // in this order
  std::optional<double> fill;              // of the boolean ones; none: -inf
  bool causal = false;
  std::optional<int64_t> window; // of causal
  int64_t groups = 1;

  /// The ops from the product of q and k to the softmax, in block order.
  llvm::SmallVector<mlir::Operation *, 4> chain;
};

/// The attention that ends in `output`, the product of weights and values. The
/// ops before the softmax may stand in any order that means the same as the one
/// above. Nothing is changed.
llvm::FailureOr<Attention> matchAttention(gpt::MatmulOp output, Refuse refuse);

/// The factor f, not rounded to f32 yet, if `value` is f times *source and
/// nothing else: gpt.scale, arith.mulf or divf with a splat constant,
/// arith.negf.
std::optional<double> matchScale(mlir::Value value, mlir::Value &source);

/// Where `op` is written, without the name of its result: the place of an op
/// that a pass makes beside it.
inline mlir::Location placeOf(mlir::Operation *op) {
  auto named = mlir::dyn_cast<mlir::NameLoc>(op->getLoc());
  return named ? named.getChildLoc() : op->getLoc();
}

} // namespace gptc
