//===- RowWise.h - which ops work on each token alone -----------*- C++ -*-===//
#pragma once
#include "gptc/Stepping/Attention.h"

namespace gptc {

/// What has to change for a stateless function to become a step.
struct StepPlan {
  llvm::SmallVector<Attention> layers; // in block order of their outputs
  llvm::SmallVector<gpt::PositionsOp> positions;
  int64_t heads = 0, headDim = 0; // KV heads and their size
};

/// Proves that every op of `func` works on each token alone, except causal
/// attention over the function's own tokens; refuses at the first op that does
/// not. Nothing is changed.
llvm::FailureOr<StepPlan> planStep(mlir::func::FuncOp func, Refuse refuse);

/// The operands of `op`, a row-wise op on [T, C], that are activations [T, C];
/// empty if rows cannot be chosen before it.
llvm::SmallVector<mlir::OpOperand *, 2> rowOperands(mlir::Operation *op);

} // namespace gptc
