//===- GemmPlan.h - a GEMM kernel's parts and tile sizes --------*- C++ -*-===//
//
// The parts of a kernel with the tile sizes of its schedule and the places of
// its scratch.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "PackedElements.h"
#include "gptc/Kernel/KernelGemm.h"
#include "gptc/Schedule/Schedule.h"

namespace gptc::cpu {

using GemmSection = KernelGemm::Section;

/// A form in which rows of A are multiplied: that of weights of one storage.
struct RowForm {
  gpt::Storage storage; ///< as MicroKernel takes it
  int64_t digits;       ///< rowDigits
  int64_t words;        ///< of a row, up to a whole vector
  int64_t packed = 0;   ///< bytes into scratch: [tiles][words][MR][repeat]
  int64_t copied = 0;   ///< bytes into the copies: [MR][pitch]
  /// How often a word stands in a packed row: twice where a pair is broadcast
  /// by a load alone.
  int64_t repeat = 1;
  /// Words from one copied row to the next. A cache line shifts each against
  /// the last, so that rows of a power of two do not meet in one set.
  int64_t pitch() const { return words + 16; }
};

struct GemmPlan : KernelGemm {
  int64_t mr = 0, nr = 0, mc = 0, kc = 0, unit = 0,
          group = 0; ///< as in GemmSchedule
  InputPrecision inputs = InputPrecision::F32;
  const TargetDesc *target = nullptr;
  llvm::SmallVector<RowForm> forms = {};
  bool unpacks = false;    ///< some weights, for many rows
  bool unpacksFew = false; ///< and for few

  int64_t digits(gpt::Storage stored) const {
    return rowDigits(stored, inputs, *target);
  }
  /// The storage that the micro-kernel of a lane reads, unpacked if its own is
  /// another. Blocks are rounded to bf16 only where its products are faster.
  gpt::Storage multiplied(gpt::Storage stored) const {
    if (digits(stored))
      return stored;
    bool rounds =
        inputs == InputPrecision::BF16 && (target->bf16Dot || !isBlock(stored));
    return rounds ? gpt::Storage::BF16x2 : gpt::Storage::F32;
  }
  const RowForm &formOf(gpt::Storage stored) const {
    return *llvm::find_if(forms, [&](const RowForm &form) {
      return form.storage == multiplied(stored);
    });
  }
  /// Whether some rows have several digits.
  bool cutsRows() const {
    return llvm::any_of(forms,
                        [](const RowForm &form) { return form.digits > 1; });
  }
  /// Fewer rows than this meet weights as they lie. Of digits they do so by four:
  /// codes that are unpacked pay from 25 rows on.
  int64_t few() const { return cutsRows() ? std::max<int64_t>(mr, 25) : mr; }
  /// Whether few rows are copied too: rounded, cut into digits or normalised.
  bool copies() const {
    return norm || llvm::any_of(forms, [](const RowForm &form) {
             return form.digits || form.storage != gpt::Storage::F32;
           });
  }

  // Scratch: packed A of every form (whose last tile is written a vector too
  // far), few copied rows of each, a normalised row, a slice of unpacked
  // weights, the accumulator tile; byte offsets.
  int64_t copyOffset() const {
    int64_t bytes = 0;
    for (const RowForm &form : forms)
      bytes += packedBytes(form);
    return bytes;
  }
  int64_t packedBytes(const RowForm &form) const {
    return mc * form.words * form.repeat * 4 + 64;
  }
  int64_t rowOffset() const {
    int64_t bytes = copyOffset();
    for (const RowForm &form : forms)
      bytes += copiedBytes(form);
    return bytes;
  }
  int64_t copiedBytes(const RowForm &form) const {
    return few() * form.pitch() * 4;
  }
  int64_t unpackedOffset() const {
    // Whole cache lines, so that what follows lies as it would without.
    return rowOffset() + (norm ? (k * 4 + 63) / 64 * 64 : 0);
  }
  int64_t tileOffset() const {
    return unpackedOffset() + (unpacks ? nr * kc * 4 : 0);
  }
  /// Elements between rows: a panel more than there are, or rows that are a
  /// power of two apart would share a few sets of L1.
  int64_t tilePitch() const { return (group + 1) * nr; }
  int64_t lanePitch() const {
    return mc * tilePitch();
  } ///< elements between lanes
  int64_t scratchBytes() const {
    return tileOffset() + maxLanes() * lanePitch() * 4;
  }
};

/// The plan of a kernel whose op is a linear or fused_gemm.
GemmPlan planGemm(KernelContext &c, const TargetDesc &target);

/// Runs the epilogue of a section over `rows` rows from row0 and `panels`
/// panels from panel0, whose accumulators lie at `tile` (plan.tilePitch,
/// plan.lanePitch).
void emitEpilogue(Emitter &e, KernelContext &c, const GemmPlan &plan,
                  unsigned section, Value row0, Value rows, Value panel0,
                  Value panels, Value tile);

} // namespace gptc::cpu
