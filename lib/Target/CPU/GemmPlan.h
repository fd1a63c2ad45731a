//===- GemmPlan.h - a GEMM kernel's parts and tile sizes --------*- C++ -*-===//
//
// The parts of a kernel with the tile sizes of its schedule and the places of
// its scratch.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "Emitter.h"
#include "gptc/Kernel/KernelGemm.h"
#include "gptc/Schedule/Schedule.h"

namespace gptc::cpu {

using GemmSection = KernelGemm::Section;

struct GemmPlan : KernelGemm {
  int64_t mr = 0, nr = 0, mc = 0, unit = 0, group = 0; ///< as in GemmSchedule

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
