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
/// region's arguments and returns the values to yield.
struct GemmSection {
  using Yields = llvm::SmallVector<mlir::Value, 2>;
  using Emit = std::function<Yields(mlir::OpBuilder &, mlir::Location,
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
  gpt::NormKindAttr norm; // null: x as it is
  mlir::Value gamma, beta;
  mlir::FloatAttr eps;
  std::optional<int64_t> layer;
  mlir::IntegerAttr rotary; // or null
  mlir::IntegerAttr argmax; // or null
  bool lanes = false;
  /// The places of all ops that go in.
  llvm::SmallVector<mlir::Location> places;

  GemmParts() = default;
  /// The parts of `op`; the sections' `emit` clone its regions, so it must
  /// outlive them.
  explicit GemmParts(gpt::FusedGemmOp op);
  /// One section with an empty epilogue.
  explicit GemmParts(gpt::LinearOp op);

  /// Appends a section that yields its accumulator.
  void addSection(GemmWeight weight);
  /// Makes the op; it lies where all of `places` do.
  gpt::FusedGemmOp create(mlir::OpBuilder &builder) const;
};

/// One location of all `places`, each once: in the order of the file that they
/// are from, or as they are given where that is not known.
mlir::Location fusedPlaces(mlir::MLIRContext *context,
                           llvm::ArrayRef<mlir::Location> places);

/// Succeeds if a fused_gemm can compute `op`: x [T, K] of static K, a weight of
/// static shape, a result of x's rows.
llvm::LogicalResult isFusable(gpt::LinearOp op, Refuse refuse);

/// True if `value` is a weight: a loaded global, or made of one (WeightPart.h).
bool isWeight(mlir::Value value);
/// True if `value` is an argument or a whole weight: parts can be cut from it.
bool isWhole(mlir::Value value);

/// Which part of a packed projection a section is: `take` features from `from`
/// on, of every `of`.
struct PackedPart {
  int64_t from, take, of;
};
/// The part of `weight`, made at the builder.
GemmWeight partOf(mlir::OpBuilder &builder, mlir::Location loc,
                  const GemmWeight &weight, PackedPart part);

/// Yields the accumulator.
GemmSection::Yields emitIdentity(mlir::OpBuilder &, mlir::Location,
                                 llvm::ArrayRef<mlir::Value> args);

/// Clones the body of `region` without its terminator; the yielded values.
GemmSection::Yields cloneEpilogue(mlir::OpBuilder &builder,
                                  mlir::Region &region,
                                  llvm::ArrayRef<mlir::Value> args);

/// True if the section yields its accumulator unchanged.
bool isIdentity(mlir::Region &epilogue);

/// The section of a GEMM that computes `result`, and which of its values it is.
struct GemmValue {
  unsigned section = 0, yield = 0;
};
GemmValue gemmValueOf(mlir::OpResult result);

/// Replaces `op` by the op made of `parts`, whose sections yield the same
/// values in order, and perhaps more after them. `op` stays, unused.
gpt::FusedGemmOp replaceGemm(mlir::RewriterBase &rewriter, gpt::FusedGemmOp op,
                             const GemmParts &parts);

/// Takes away the results that nothing uses, of every GEMM within `root`.
void dropUnusedResults(mlir::Operation *root);

/// True if `value` is defined before `op`, in its block.
bool isBefore(mlir::Value value, mlir::Operation *op);

/// True if the definition of `value` stands before `before` or may be moved
/// there: it is a weight, a part of one, a constant or the positions. `hoist`
/// moves it.
bool canHoist(mlir::Value value, mlir::Operation *before);
void hoist(mlir::RewriterBase &rewriter, mlir::Value value,
           mlir::Operation *before);

} // namespace gptc
