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

/// The last dimensions of `to`, each equal or 1.
mlir::LogicalResult expectBroadcast(mlir::Operation *op,
                                    llvm::StringRef constraint,
                                    llvm::StringRef what,
                                    mlir::RankedTensorType got,
                                    llvm::ArrayRef<int64_t> to);

/// At least 1, or null.
mlir::LogicalResult expectWindow(mlir::Operation *op,
                                 llvm::StringRef constraint,
                                 mlir::IntegerAttr window);

/// Even and from 2 to the head size, or null.
mlir::LogicalResult expectRotary(mlir::Operation *op,
                                 llvm::StringRef constraint,
                                 mlir::IntegerAttr rotary, int64_t headDim);

/// A number to divide by (Numbers.h).
mlir::LogicalResult expectCap(mlir::Operation *op, llvm::StringRef constraint,
                              double cap);

/// One number for each head (Numbers.h).
mlir::LogicalResult expectSlopes(mlir::Operation *op,
                                 llvm::StringRef constraint,
                                 llvm::ArrayRef<double> slopes, int64_t heads);

/// Below infinity in f32 and beside a boolean mask (null: no mask), or null.
mlir::LogicalResult expectFill(mlir::Operation *op, llvm::StringRef constraint,
                               mlir::FloatAttr fill,
                               mlir::RankedTensorType mask);

/// `[0.5, 0.25]`, printed exactly.
mlir::ParseResult parseNumbers(mlir::OpAsmParser &parser,
                               llvm::SmallVectorImpl<double> &numbers);
void printNumbers(mlir::OpAsmPrinter &printer, llvm::ArrayRef<double> numbers);

/// A number to divide by (Numbers.h).
mlir::LogicalResult expectEps(mlir::Operation *op, llvm::StringRef constraint,
                              double eps);

/// 0 <= layer < layers of the cache.
mlir::LogicalResult expectLayer(mlir::Operation *op, llvm::StringRef constraint,
                                int64_t layer, KVCacheType cache);

} // namespace gptc::gpt
