//===- Precision.h - arithmetic of GEMM and attention -----------*- C++ -*-===//
#pragma once
#include "llvm/ADT/StringRef.h"
#include <optional>

namespace gptc {

/// What the inputs of GEMM and attention are rounded to. Sums are f32; products
/// of INT8 are summed exactly, and attention is then f32.
enum class InputPrecision { F32, TF32, BF16, F16, INT8 };

llvm::StringRef stringifyPrecision(InputPrecision precision);
std::optional<InputPrecision> symbolizePrecision(llvm::StringRef name);

} // namespace gptc
