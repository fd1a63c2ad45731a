//===- Slices.h - parts of a function, evaluated ----------------*- C++ -*-===//

#ifndef GPTC_LIB_VERIFY_SLICES_H
#define GPTC_LIB_VERIFY_SLICES_H

#include "gptc/Reference/Evaluator.h"
#include "llvm/ADT/SetVector.h"

namespace gptc::verify {

using Values = llvm::DenseMap<mlir::Value, reference::TensorRef>;

/// What is computed on the way to some values from others.
struct Slice {
  llvm::SmallVector<mlir::Operation *> ops; // in block order
  llvm::SetVector<mlir::Value> inputs;      // not computed by ops
};

/// Backwards from `targets` to values that are inputs, as `isInput` says, or
/// arguments of the block.
Slice sliceOf(mlir::ValueRange targets,
              llvm::function_ref<bool(mlir::Value)> isInput);

/// Evaluates one op. Caches are values here: one that the op writes is copied
/// first.
mlir::FailureOr<reference::Results>
evaluatePure(reference::Evaluator &evaluator, mlir::Operation *op,
             llvm::ArrayRef<reference::TensorRef> operands);

/// Adds the values of the slice's ops to those of its inputs.
mlir::LogicalResult evaluateSlice(reference::Evaluator &evaluator,
                                  const Slice &slice, Values &values);

/// Every element rounded to f32.
reference::TensorRef roundedToF32(const reference::TensorRef &tensor);

/// [..., H, T, D] as [..., T, H * D].
reference::TensorRef withMergedHeads(const reference::Tensor &tensor);

/// Rounding of double, over the sums of an op.
constexpr double same = 1e-12;

/// The largest difference in units of the largest element; infinite above
/// `enough`.
double distance(const reference::Tensor &right, const reference::Tensor &got,
                double enough);

/// Elements; of a cache, what `sequence` holds in every layer.
std::vector<double> numbersOf(const reference::Tensor &tensor,
                              int64_t sequence);

} // namespace gptc::verify

#endif // GPTC_LIB_VERIFY_SLICES_H
