//===- Argmax.h - the largest numbers of a row, lane by lane ----*- C++ -*-===//
//
// Each lane keeps the first of the largest numbers in its columns; of the lanes
// the largest counts, of equal ones the lowest column. A NaN is below every
// number. Columns are counted in i32, as results are.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "Emitter.h"

namespace gptc::cpu {

/// Vectors of what each lane has found: its number and its column.
struct LaneBest {
  Value value, column;

  /// Nothing: a NaN at a column that no number has.
  static LaneBest none(Emitter &e);
  /// With the numbers at columns `first` (i64) and on; of the lanes of `mask`
  /// if it is not null.
  LaneBest with(Emitter &e, Value numbers, Value first, Value mask) const;
  /// The best of all lanes, as scalars.
  LaneBest ofLanes(Emitter &e) const;
};

} // namespace gptc::cpu
