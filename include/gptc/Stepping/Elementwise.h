//===- Elementwise.h - ops that work element by element ---------*- C++ -*-===//
#pragma once
#include "gptc/Dialect/Gpt/Gpt.h"

namespace gptc {

/// One result, operands of its type, computed element by element.
bool isElementwise(mlir::Operation *op);

/// The value of a constant (or splat of one) whose elements are all equal.
std::optional<double> splatConstant(mlir::Value value);

} // namespace gptc
