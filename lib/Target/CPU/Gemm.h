//===- Gemm.h - one GEMM kernel under generation ----------------*- C++ -*-===//
#pragma once
#include "GemmPlan.h"
#include "MicroKernel.h"

namespace gptc::cpu {

/// The loops of one kernel (GemmKernel.cpp) and its rows of A (GemmRows.cpp).
struct Gemm {
  Emitter &e;
  KernelContext &c;
  const GemmPlan &p;
  Value m, x, copy, unpacked, tile;

  /// Row counts of the tiles that cover fewer than MR rows, at most `most` each.
  llvm::SmallVector<int64_t> tailRows(int64_t most) {
    llvm::SmallVector<int64_t> sizes;
    for (int64_t r = 1; r < p.mr && r <= most; r *= 2)
      sizes.insert(sizes.begin(), r);
    return sizes;
  }
  /// body(r0, R) for tiles of falling size that cover [0, rows).
  void coverRows(Value rows, int64_t most,
                 llvm::function_ref<void(Value, int64_t)> body) {
    Value from = e.cst(0);
    for (int64_t r : tailRows(most)) {
      Value to = e.mul(e.div(rows, r), r);
      e.loop(from, to, r, [&](Value r0) { body(r0, r); });
      from = to;
    }
  }
  int64_t stride(const GemmSection &s, unsigned lane) {
    return panelBytes(s.storage[lane], p.nr, p.k);
  }
  Value panelAt(const GemmSection &s, unsigned lane, Value panel) {
    return e.at(c.arg(e, s.weights[lane]), e.mul(panel, stride(s, lane)));
  }
  /// Rows of A `lda` words apart, `steps` rows of each panel; panels at `next`
  /// are streamed after these.
  MicroOperands operands(Value a, int64_t lda, Value b, int64_t panelStride,
                         Value cAt, Value steps, Value next) {
    return {a,   e.cst(lda),           b,     e.cst(panelStride), e.cst(p.nr),
            cAt, e.cst(p.tilePitch()), steps, next};
  }
  Value tileAt(unsigned lane, Value row, Value panel) {
    Value columns = e.add(e.mul(panel, p.nr), e.mul(row, p.tilePitch()));
    return e.elem(tile, e.add(columns, lane * p.lanePitch()));
  }

  /// Asks for the first rows of the panels that fewRows begins with.
  void begin(unsigned section, Value lo, Value hi);
  void allFewRows();
  void allManyRows();
  int64_t panelCount(const GemmSection &s) { return (s.n + p.nr - 1) / p.nr; }
  /// body(section, its panels from, to) of part `part` of `parts`.
  void eachSection(Value part, Value parts,
                   llvm::function_ref<void(unsigned, Value, Value)> body);
  void fewRows(unsigned section, Value lo, Value hi);
  /// The rows lie packed in scratch; row0 is the first.
  void manyRows(unsigned section, Value lo, Value hi, Value row0, Value rows);
  /// A panel of a section for many rows: the `panel`-th of a group's `panels`
  /// from panel0 on, and the rows that lie packed, row0 the first.
  struct PanelRows {
    unsigned section, lane;
    Value panel0, panels, panel, row0, rows;
  };
  void slice(const PanelRows &at, Value k0);
  /// Sums of `size` rows from tileRow on become 0.
  void clear(const PanelRows &at, Value tileRow, Value size);
  /// What these rows need behind their products: the scales of bytes, and where
  /// a unit's last panel is done, its epilogue.
  void finish(const PanelRows &at, Value tileRow, Value size);
  /// Rows of a panel for `depth` input features.
  Value steps(gpt::Storage storage, Value depth) {
    return p.digits(storage) ? byteSteps(e, storage, depth)
           : storage == gpt::Storage::BF16x2 ? e.ceilDiv(depth, 2)
                                             : depth;
  }
  /// Of i8x4, sums become numbers: rows of a tile of A from tileRow on, `size`
  /// of them from r0, packed or copied.
  void scaleBytes(const GemmSection &s, unsigned lane, Value panel,
                  Value tilePanel, Value row, Value size, bool packed);
  /// Few rows, or a tile of many, to the copy.
  void copyRows(Value row0, Value rows);
  void pack(Value row0, Value rows);
  /// Row r of x normalised, at `to`.
  void normalize(Value r, Value to);
  std::pair<Value, Value> panelsOf(unsigned section, int64_t base, Value from,
                                   Value to);
};

} // namespace gptc::cpu
