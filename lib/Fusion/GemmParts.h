//===- GemmParts.h - a fused_gemm taken apart -------------------*- C++ -*-===//
//
// fused_gemm has many operand groups that must agree; a fusion changes these
// parts and makes a new op of them.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "gptc/Dialect/Gpt/Gpt.h"
#include "gptc/Stepping/Attention.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"

namespace gptc {

/// One weight of a GEMM.
struct GemmWeight {
  mlir::Value weight;
  mlir::Value bias; // or null
  bool inOut = false;
};

/// One epilogue. `emit` writes the region's body at the builder from the
/// region's arguments and returns the value to yield.
struct GemmSection {
  using Emit = std::function<mlir::Value(mlir::OpBuilder &, mlir::Location,
                                         llvm::ArrayRef<mlir::Value>)>;
  Emit emit;
  std::optional<gpt::RopePairs> rope;
  gpt::Append append = gpt::Append::None;
};

struct GemmParts {
  mlir::Value x;
  llvm::SmallVector<GemmWeight> weights;
  llvm::SmallVector<GemmSection> sections; // one if lanes
  llvm::SmallVector<mlir::Value> residuals;
  mlir::Value ropeTable, positions, sequences, cache;
  std::optional<int64_t> layer;
  bool lanes = false;

  GemmParts() = default;
  /// The parts of `op`; the sections' `emit` clone its regions, so it must
  /// outlive them.
  explicit GemmParts(gpt::FusedGemmOp op);
  /// One section with an empty epilogue.
  explicit GemmParts(gpt::LinearOp op);

  /// Appends a section that yields its accumulator.
  void addSection(GemmWeight weight);
  gpt::FusedGemmOp create(mlir::OpBuilder &builder, mlir::Location loc) const;
};

/// Succeeds if a fused_gemm can compute `op`: x [T, K] of static K, a weight of
/// static shape, a result of x's rows.
llvm::LogicalResult isFusable(gpt::LinearOp op, Refuse refuse);

/// Yields the accumulator.
mlir::Value emitIdentity(mlir::OpBuilder &, mlir::Location,
                         llvm::ArrayRef<mlir::Value> args);

/// Clones the body of `region` without its terminator; the yielded value.
mlir::Value cloneEpilogue(mlir::OpBuilder &builder, mlir::Region &region,
                          llvm::ArrayRef<mlir::Value> args);

/// True if the section yields its accumulator unchanged.
bool isIdentity(mlir::Region &epilogue);

/// The section of `op` that computes `result`.
unsigned sectionOf(mlir::OpResult result);

/// Replaces `op` by the op made of `parts`, whose tensor results are the same
/// ones in order or, where sections now append, fewer.
gpt::FusedGemmOp replaceGemm(mlir::RewriterBase &rewriter, gpt::FusedGemmOp op,
                             const GemmParts &parts);

/// True if `value` is defined before `op`, in its block.
bool isBefore(mlir::Value value, mlir::Operation *op);

/// True if the definition of `value` stands before `before` or may be moved
/// there: it is a weight, a slice of one or a constant. `hoist` moves it.
bool canHoist(mlir::Value value, mlir::Operation *before);
void hoist(mlir::RewriterBase &rewriter, mlir::Value value,
           mlir::Operation *before);

} // namespace gptc
