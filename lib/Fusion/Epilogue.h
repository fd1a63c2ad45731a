//===- Epilogue.h - what the parts of fuse-epilogue share -------*- C++ -*-===//
#pragma once
#include "gptc/Dialect/Gpt/Gpt.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Pass/Pass.h"

namespace gptc {

constexpr llvm::StringLiteral epilogueFusion = "fuse-epilogue";

/// The GEMM of this block that computes `value` as a number of each row and
/// column, else null.
gpt::FusedGemmOp gemmOf(mlir::Value value, mlir::Operation *user);

/// Whether a GEMM of several sections computes nothing but tensors.
bool isPlain(gpt::FusedGemmOp gemm);

/// The numbers by column that `value` repeats for every row, else null.
mlir::Value rowOf(mlir::Value value);

/// The first user of `gemm`, besides `except`, that runs before `op`; null if
/// `gemm` may move there. Rows that only `op` uses ask for its sizes alone.
mlir::Operation *userBefore(gpt::FusedGemmOp gemm, mlir::Operation *op,
                            mlir::Operation *except = nullptr);

/// Base of the patterns on elementwise ops.
struct ElementwisePattern : mlir::RewritePattern {
  ElementwisePattern(mlir::MLIRContext *context, unsigned benefit,
                     mlir::Pass::Statistic &numFused)
      : RewritePattern(MatchAnyOpTypeTag(), benefit, context),
        numFused(numFused) {}
  mlir::Pass::Statistic &numFused;
};

/// Two GEMMs, or two sections of one, that meet become lanes of one.
void addLanesPattern(mlir::RewritePatternSet &patterns, unsigned benefit,
                     mlir::Pass::Statistic &numFused);

} // namespace gptc
