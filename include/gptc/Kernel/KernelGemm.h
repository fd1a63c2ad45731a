//===- KernelGemm.h - what a GEMM kernel consists of ------------*- C++ -*-===//
//
// One description of gpt.linear and gpt.fused_gemm for the code generators:
// which kernel argument is what. Dimensions: M rows (tokens), K input features,
// N output features.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "gptc/Dialect/Gpt/Gpt.h"

namespace gptc {

struct KernelGemm {
  struct Section {
    llvm::SmallVector<unsigned>
        weights;                   ///< kernel argument of each lane's weight
    llvm::SmallVector<int> biases; ///< kernel argument, or -1
    llvm::SmallVector<gpt::Storage> storage;
    int64_t n = 0;
    std::optional<gpt::RopePairs> rope;
    gpt::Append append = gpt::Append::None;
    int result = -1; ///< kernel result of its first value that is not appended
    unsigned results =
        1; ///< its values, but the one that it appends; two of an argmax
    mlir::Region *epilogue = nullptr; ///< null: the accumulator itself
  };
  llvm::SmallVector<Section> sections;
  struct Residual {
    unsigned argument; ///< of the kernel
    bool row;          ///< [N], the same numbers for every row
  };
  llvm::SmallVector<Residual> residuals;
  unsigned x = 0;
  std::optional<gpt::NormKind> norm; ///< of the rows of x
  int gamma = -1, beta = -1;         ///< kernel arguments, or -1
  double eps = 0;
  int ropeTable = -1, positions = -1, sequences = -1, cache = -1;
  gpt::KVCacheType cacheType;
  int64_t k = 0;
  int64_t headDim = 0; ///< of roped and appended sections, else 0
  int64_t rotary = 0;  ///< channels of a head that rotate
  int64_t argmax = 0;  ///< columns of a block whose largest is kept, or 0

  int64_t maxLanes() const;
};

/// The parts of a kernel whose op is a linear or fused_gemm.
KernelGemm kernelGemm(gpt::KernelOp kernel);

/// The head size that a GEMM's tiles must respect: that of its rope table or
/// cache, else 0.
int64_t headDimOf(mlir::Operation *gemm);

} // namespace gptc
