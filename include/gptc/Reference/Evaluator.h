//===- Evaluator.h - what every op means, in double -------------*- C++ -*-===//
//
// A naive evaluator of gpt-dialect functions: graph functions, stepping
// functions and fused ones, before and after outlining. It is the meaning that
// kernels are checked against and shares no code with them. Arithmetic is
// double throughout; constants and weights keep the values that they have in
// their own types.
//
// An op without a rule, an index out of range and extents that do not agree
// are errors at the op's location. It does not evaluate control flow.
//
//===----------------------------------------------------------------------===//

#ifndef GPTC_REFERENCE_EVALUATOR_H
#define GPTC_REFERENCE_EVALUATOR_H

#include "gptc/Reference/Tensor.h"
#include "gptc/Reference/Weights.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace gptc::reference {

using Results = llvm::SmallVector<TensorRef, 2>;

/// Double is the meaning of an op. Single is the plain computation in f32: the
/// same loops with every sum, product, quotient and function value rounded
/// once. How far the two are apart is what f32 costs, and the measure of what
/// a kernel may cost. TF32, BF16 and F16 are Single whose products of matrices
/// (linear, fused_gemm, matmul, attention) round their inputs to that format
/// first, to nearest, ties to even; the inputs of attention are queries, keys,
/// values and probabilities. Int8 is Single whose linear and fused_gemm round
/// rows of x, and weights of each output feature, to multiples of a 127th of
/// their largest magnitude; Int8Blocks rounds x so in blocks of 32, and no
/// weights: they are stored so. Rows of embedding are rounded like weights.
enum class Precision { Double, Single, Int8, Int8Blocks, TF32, BF16, F16 };

/// `x` rounded to the inputs of a precision: to its format, which for Double
/// and Single leaves it alone. What is too large for the format is infinite.
double roundedInput(Precision precision, double x);

/// The most by which that changes a number up to `magnitude` that the format
/// can hold: half of the last place there. 0 for Double and Single.
double roundingError(Precision precision, double magnitude);

class Evaluator {
public:
  /// `weights` may be null when no extern global is loaded, and must outlive
  /// the evaluator. Keys and values (k and v of attention, the right operand of
  /// matmul) are rounded to `cached` first, as a KV cache of such elements
  /// does; Double rounds nothing.
  explicit Evaluator(WeightSource *weights = nullptr,
                     Precision precision = Precision::Double,
                     Precision cached = Precision::Single)
      : weights(weights), precision(precision), cached(cached) {}

  /// The results of calling `function`; caches among `args` are written.
  mlir::FailureOr<Results> run(mlir::func::FuncOp function,
                               llvm::ArrayRef<TensorRef> args);

  /// The results of one op, given its operands: also of a `gpt.call`, by its
  /// kernel's body, and of a `gpt.kernel`, its operands being the arguments and
  /// its cache layer 0.
  mlir::FailureOr<Results> evalOp(mlir::Operation *op,
                                  llvm::ArrayRef<TensorRef> operands);

private:
  mlir::FailureOr<Results> evalChecked(mlir::Operation *op,
                                       llvm::ArrayRef<TensorRef> operands);
  mlir::FailureOr<Results> dispatch(mlir::Operation *op,
                                    llvm::ArrayRef<TensorRef> operands);
  mlir::FailureOr<Results> runRegion(mlir::Operation *callable,
                                     mlir::Region &body,
                                     llvm::ArrayRef<TensorRef> args);
  mlir::FailureOr<Results> loadGlobal(mlir::ml_program::GlobalLoadConstOp op);

  WeightSource *weights;
  Precision precision, cached;
  int depth = 0;
  /// Added to the cache layer that an op names: set by the call of a kernel.
  int64_t layerBase = 0;
  llvm::DenseMap<mlir::Operation *, TensorRef> denseGlobals;
};

} // namespace gptc::reference

#endif // GPTC_REFERENCE_EVALUATOR_H
