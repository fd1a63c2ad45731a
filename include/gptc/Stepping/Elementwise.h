//===- Elementwise.h - ops that work element by element ---------*- C++ -*-===//
#pragma once
#include "gptc/Dialect/Gpt/Gpt.h"

namespace gptc {

/// One result, operands of its type, computed element by element.
bool isElementwise(mlir::Operation *op);

/// One result, operands that are tensors, computed element by element: also
/// comparisons and selects. False for null.
bool isElementwiseOnTensors(mlir::Operation *op);

/// Whether this use needs the sizes of a value only, not its numbers.
bool isLike(mlir::OpOperand &use);

/// What a value repeats: the operand of gpt.broadcast, or the tensor whose one
/// number is that of a tensor.splat, and so on; else the value itself.
mlir::Value unbroadcast(mlir::Value value);

/// The factor as it is meant: rounded to f32 once.
double factorOf(gpt::ScaleOp op);

/// The number that all elements of a constant (or splat of one) are; null for
/// other values.
mlir::TypedAttr constantNumber(mlir::Value value);

/// The same of floating-point numbers.
std::optional<double> splatConstant(mlir::Value value);

} // namespace gptc
