//===- GemmPlan.h - a GEMM kernel's parts and tile sizes --------*- C++ -*-===//
//
// One description of gpt.linear and gpt.fused_gemm for the generator.
// Dimensions: M rows (tokens), K input features, N output features; the tile
// sizes are the kernel's schedule.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "Emitter.h"
#include "gptc/Schedule/Schedule.h"

namespace gptc::cpu {

struct GemmSection {
  llvm::SmallVector<unsigned>
      weights;                   ///< kernel argument of each lane's weight
  llvm::SmallVector<int> biases; ///< kernel argument, or -1
  llvm::SmallVector<gpt::Storage> storage;
  int64_t n = 0;
  std::optional<gpt::RopePairs> rope;
  gpt::Append append = gpt::Append::None;
  int result = -1; ///< kernel result of its first value that is not appended
  unsigned results = 1;
  mlir::Region *epilogue = nullptr; ///< null: the accumulator itself
};

struct GemmPlan {
  llvm::SmallVector<GemmSection> sections;
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

  int64_t mr = 0, nr = 0, mc = 0, unit = 0, group = 0; ///< as in GemmSchedule
  int64_t maxLanes() const;

  // Scratch: packed A, a normalised row, unpacked weights, the accumulator
  // tile; byte offsets. Few rows are not packed: normalised, they take the
  // place of packed A.
  int64_t rowOffset() const { return mc * k * 4; }
  int64_t unpackedOffset() const {
    // Whole cache lines, so that what follows lies as it would without.
    return rowOffset() + (norm ? (k * 4 + 63) / 64 * 64 : 0);
  }
  int64_t tileOffset() const {
    return unpackedOffset() +
           (needsUnpack ? maxLanes() * unit * nr * k * 4 : 0);
  }
  int64_t tilePitch() const { return group * nr; } ///< elements between rows
  int64_t lanePitch() const {
    return mr * tilePitch();
  } ///< elements between lanes
  int64_t scratchBytes() const {
    return tileOffset() + maxLanes() * lanePitch() * 4;
  }
  bool needsUnpack = false;
};

/// The plan of a kernel whose op is a linear or fused_gemm.
GemmPlan planGemm(KernelContext &c);

/// Runs the epilogue of a section over `rows` rows from row0 and `panels`
/// panels from panel0, whose accumulators lie at `tile` (plan.tilePitch,
/// plan.lanePitch).
void emitEpilogue(Emitter &e, KernelContext &c, const GemmPlan &plan,
                  unsigned section, Value row0, Value rows, Value panel0,
                  Value panels, Value tile);

} // namespace gptc::cpu
