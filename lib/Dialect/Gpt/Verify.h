//===- Verify.h - sentences that the verifiers share ------------*- C++ -*-===//
//
// Every check names its constraint as docs/Semantics.md numbers it
// ("[linear-C2] expected ..., got ...").
//
//===----------------------------------------------------------------------===//
#pragma once
#include "gptc/Dialect/Gpt/Gpt.h"

namespace gptc::gpt {

/// Do two dimensions agree as far as is known before running?
inline bool agree(int64_t a, int64_t b) {
  return mlir::ShapedType::isDynamic(a) || mlir::ShapedType::isDynamic(b) ||
         a == b;
}

/// "?" or the number.
std::string dimText(int64_t dim);

/// Fails with "[constraint] expected `what` to be `expected`, got `got`".
mlir::LogicalResult expectDim(mlir::Operation *op, llvm::StringRef constraint,
                              llvm::StringRef what, int64_t got,
                              int64_t expected);

mlir::LogicalResult expectRank(mlir::Operation *op, llvm::StringRef constraint,
                               llvm::StringRef what,
                               mlir::RankedTensorType type, int64_t rank);

mlir::LogicalResult expectRankAtLeast(mlir::Operation *op,
                                      llvm::StringRef constraint,
                                      llvm::StringRef what,
                                      mlir::RankedTensorType type,
                                      int64_t rank);

/// All dimensions agree, and the ranks are equal.
mlir::LogicalResult expectShape(mlir::Operation *op, llvm::StringRef constraint,
                                llvm::StringRef what,
                                mlir::RankedTensorType got,
                                llvm::ArrayRef<int64_t> expected);

/// Finite and above 0.
mlir::LogicalResult expectEps(mlir::Operation *op, llvm::StringRef constraint,
                              double eps);

/// 0 <= layer < layers of the cache.
mlir::LogicalResult expectLayer(mlir::Operation *op, llvm::StringRef constraint,
                                int64_t layer, KVCacheType cache);

} // namespace gptc::gpt
