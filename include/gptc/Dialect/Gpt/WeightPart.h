//===- WeightPart.h - weights that are made of others -----------*- C++ -*-===//
//
// Kernels read weights packed. What packing can do to a weight on the way
// needs no kernel: take a part of it, or add one number to a vector (the scale
// of a norm that is stored less 1, as Gemma's are).
//
//===----------------------------------------------------------------------===//
#pragma once
#include "gptc/Dialect/Gpt/Gpt.h"

namespace gptc {

/// The weight that `op` makes another one of, by a tensor.extract_slice, a
/// gpt.head_part or a shift; null for other ops and for null.
mlir::Value wholeOf(mlir::Operation *op);

/// The number that `op` adds to every element of a loaded vector: an arith.addf
/// of a global [N] and a splat. It is finite and not 0. Nothing for other ops.
std::optional<double> shiftOf(mlir::Operation *op);

} // namespace gptc
