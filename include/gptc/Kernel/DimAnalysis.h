//===- DimAnalysis.h - which dynamic sizes are equal ------------*- C++ -*-===//
//
// Numbers the dynamic dimensions of every value of an entry, before or after
// outlining, by union-find over what each op says about its operands and
// results. Nothing is changed.
//
// A size is written as in gptc_value_desc: >= 0 static, else -1 - d for the
// dynamic dimension d.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "gptc/Dialect/Gpt/Gpt.h"
#include "llvm/ADT/DenseMap.h"

namespace gptc {

using Sizes = llvm::SmallVector<int64_t, 4>;

/// Sets of equal sizes. The axes of a value enter when they are first asked
/// for.
class DimClasses {
public:
  void unite(mlir::Value a, unsigned axisA, mlir::Value b, unsigned axisB);
  /// The axis has this size.
  void fix(mlir::Value value, unsigned axis, int64_t extent);
  /// What `op` says: `linear` keeps its rows, `embedding` has a row per id, ...
  /// For a gpt.call, what `gpt.dims` of its kernel says.
  void addRulesOf(mlir::Operation *op);
  /// Root of the set of an axis.
  unsigned find(mlir::Value value, unsigned axis);
  /// The static size in the set, if it has one.
  std::optional<int64_t> staticSize(mlir::Value value, unsigned axis);

  /// The first set found to have two static sizes: an axis of it, and both.
  struct Conflict {
    mlir::Value value;
    unsigned axis;
    int64_t first, second;
  };
  std::optional<Conflict> conflict;

private:
  unsigned node(mlir::Value value, unsigned axis);
  unsigned root(unsigned node);
  void uniteAll(mlir::ValueRange values);
  void groupsRule(mlir::Value a, mlir::Value b, unsigned axis, int64_t groups);

  llvm::DenseMap<mlir::Value, unsigned> firstNode;
  llvm::SmallVector<unsigned> parent;
  llvm::SmallVector<int64_t> size; // of a root; -1: dynamic
};

class DimAnalysis {
public:
  /// Dimensions are numbered in order of first appearance: arguments, then
  /// results of ops. Fails, with a diagnostic at the entry, when a `?` must
  /// have one static size, or when a step entry's arguments are not
  /// (tokens, positions, sequences, rows, cache).
  static mlir::FailureOr<DimAnalysis> compute(mlir::func::FuncOp entry);

  /// Sizes of a ranked tensor of the entry; empty for a cache.
  Sizes sizes(mlir::Value value) const;
  int64_t count() const { return numDims; }

  /// Dimensions of a step entry (tokens, wanted rows, keys of the one sequence
  /// that an unfused step runs); -1 where there is none.
  int64_t tokens = -1, rows = -1, keys = -1;

private:
  llvm::DenseMap<mlir::Value, Sizes> sizesOf;
  int64_t numDims = 0;
};

/// Writes the size of every `?` of an entry that has one because of another
/// value's static size, so that the package asks for it when it runs. Before
/// outlining. Fails, with a diagnostic at the op, when sizes cannot agree, or
/// when only running could tell whether heads and groups do.
llvm::LogicalResult refineSizes(mlir::func::FuncOp entry);

/// Whether an entry runs over a KV cache.
bool isStepEntry(mlir::func::FuncOp entry);

/// `gpt.dims` of a kernel: sizes per argument, then per result, numbered in
/// that order by what its op alone says.
mlir::ArrayAttr kernelDims(gpt::KernelOp kernel);

/// The entries of `gpt.dims`, arguments then results.
llvm::SmallVector<llvm::ArrayRef<int64_t>> dimsOf(gpt::KernelOp kernel);

} // namespace gptc
