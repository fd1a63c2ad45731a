//===- Rules.h - one evaluation rule per op ---------------------*- C++ -*-===//
//
// Internal to the room. A rule gets operands whose rank, element kind and
// static extents have been checked against their types; dynamic extents have
// not, and are its own business. It returns the op's results or reports at the
// op and fails.
//
//===----------------------------------------------------------------------===//

#ifndef GPTC_LIB_REFERENCE_RULES_H
#define GPTC_LIB_REFERENCE_RULES_H

#include "gptc/Dialect/Gpt/Gpt.h"
#include "gptc/Reference/Evaluator.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <functional>

namespace gptc::reference {

/// The rounding of every operation: none in double, else to f32 (a double sum,
/// product, quotient or root of f32 values, rounded to f32, is that of f32
/// arithmetic: 53 >= 2 * 24 + 2).
struct Rounding {
  Precision precision = Precision::Double;
  Precision cached = Precision::Single; ///< of keys and values

  double operator()(double x) const {
    return precision == Precision::Double
               ? x
               : static_cast<double>(static_cast<float>(x));
  }
  /// An input of a product of matrices.
  double input(double x) const {
    return precision < Precision::TF32 ? x : roundedInput(precision, x);
  }
  /// One that is a key or a value, or may be.
  double cachedInput(double x) const {
    return input(precision == Precision::Double ? x : roundedInput(cached, x));
  }
  /// `values` as such inputs: themselves, or rounded into `room`.
  llvm::ArrayRef<double> inputs(llvm::ArrayRef<double> values,
                                std::vector<double> &room) const;
  llvm::ArrayRef<double> cachedInputs(llvm::ArrayRef<double> values,
                                      std::vector<double> &room) const;
  bool ofBytes() const {
    return precision == Precision::Int8 || precision == Precision::Int8Blocks;
  }
};

/// Rounds `count` runs of `length` numbers `step` apart, `next` from one run's
/// first to the next's, to whole multiples of a 127th of their largest
/// magnitude. A run that is not finite becomes NaN.
void roundToBytes(std::vector<double> &values, int64_t count, int64_t length,
                  int64_t step, int64_t next);

/// One evaluation: the op, its operands, and what to add to the cache layer
/// that the op names (a kernel's body says 0; the call of the kernel says
/// which).
struct Call {
  mlir::Operation *op;
  llvm::ArrayRef<TensorRef> operands;
  int64_t layerBase = 0;
  Rounding round = {};

  /// What the operand `value` of the op holds.
  const TensorRef &ref(mlir::Value value) const;
  const Tensor &operator[](mlir::Value value) const { return *ref(value); }
};

using Outcome = mlir::FailureOr<Results>;

/// A float tensor of zeros, or null after an error at `op` (too large).
std::shared_ptr<Tensor> allocate(mlir::Operation *op,
                                 llvm::ArrayRef<int64_t> shape);

/// Reports unless `got` is `expected`; `what` says what is counted.
mlir::LogicalResult expectExtent(mlir::Operation *op, int64_t got,
                                 int64_t expected, const llvm::Twine &what);

/// The largest number of each `block` columns of `x` [rows, N], and its column:
/// [rows, P] each, as gpt.argmax says.
std::pair<TensorRef, TensorRef> largestOf(const TensorRef &x, int64_t block);

/// The tensor of a constant's attribute, or null after an error at `op`.
TensorRef constantTensor(mlir::Operation *op, mlir::Attribute value);

/// The function of an elementwise op of arith, math or gpt on scalars; an
/// integer or boolean operand or result is its exact value. Empty for others.
using ScalarFunction = std::function<double(llvm::ArrayRef<double>)>;
ScalarFunction scalarFunction(mlir::Operation *op);

/// x [..., K] times `weight` [N, K], or [K, N] when `inOut`, plus `bias` [N]
/// unless null; result [..., N], or null after an error at the op.
std::shared_ptr<Tensor> affine(const Call &call, const Tensor &x,
                               const Tensor &weight, bool inOut,
                               const Tensor *bias);

/// Each row normalised as docs/Semantics.md says of layer_norm (also of a
/// `sample`) and rms_norm, beta taken as 0 when null; null after an error at
/// the op.
std::shared_ptr<Tensor> normalize(const Call &call, const Tensor &x,
                                  const Tensor &gamma, const Tensor *beta,
                                  double eps, gpt::NormKind kind);

/// The dim/2 inverse frequencies, in radians per position.
std::vector<double> inverseFrequencies(gpt::RopeAttr rope);
/// The other channel of the pair that channel `c` of `dim` is in, and whether
/// `c` is the first of the two.
int64_t partnerChannel(gpt::RopePairs pairs, int64_t c, int64_t dim);
bool isFirstOfPair(gpt::RopePairs pairs, int64_t c, int64_t dim);

// Elementwise.cpp: null-free when `op` is elementwise.
Outcome evalElementwise(const Call &call, const ScalarFunction &function);

// GraphOps.cpp
Outcome eval(gpt::EmbeddingOp op, const Call &call);
Outcome eval(gpt::PositionsOp op, const Call &call);
Outcome eval(gpt::SelectRowsOp op, const Call &call);
Outcome eval(gpt::LinearOp op, const Call &call);
Outcome eval(gpt::MatmulOp op, const Call &call);
Outcome eval(gpt::SplitOp op, const Call &call);
Outcome eval(gpt::SplitHeadsOp op, const Call &call);
Outcome eval(gpt::MergeHeadsOp op, const Call &call);
Outcome eval(gpt::HeadPartOp op, const Call &call);
Outcome eval(gpt::ArgmaxOp op, const Call &call);
Outcome eval(gpt::DropoutOp op, const Call &call);
Outcome eval(gpt::ScaleOp op, const Call &call);

// Norms.cpp
Outcome eval(gpt::LayerNormOp op, const Call &call);
Outcome eval(gpt::RmsNormOp op, const Call &call);

// Rope.cpp
Outcome eval(gpt::RopeOp op, const Call &call);
Outcome eval(gpt::RopeTableOp op, const Call &call);
Outcome eval(gpt::RotateOp op, const Call &call);

// Attention.cpp
Outcome eval(gpt::BroadcastOp op, const Call &call);
Outcome eval(gpt::AlibiOp op, const Call &call);
Outcome eval(gpt::CausalMaskOp op, const Call &call);
Outcome eval(gpt::MaskOp op, const Call &call);
Outcome eval(gpt::SoftmaxOp op, const Call &call);
Outcome eval(gpt::LogSoftmaxOp op, const Call &call);
Outcome eval(gpt::FlashAttentionOp op, const Call &call);
Outcome eval(gpt::KVAppendOp op, const Call &call);
Outcome eval(gpt::KVReadOp op, const Call &call);

// FusedGemm.cpp
Outcome eval(gpt::FusedGemmOp op, const Call &call);
Outcome eval(gpt::MergeArgmaxOp op, const Call &call);

// TensorOps.cpp
Outcome eval(mlir::tensor::DimOp op, const Call &call);
Outcome eval(mlir::tensor::SplatOp op, const Call &call);
Outcome eval(mlir::tensor::EmptyOp op, const Call &call);
Outcome eval(mlir::tensor::CastOp op, const Call &call);
Outcome eval(mlir::tensor::ExtractOp op, const Call &call);
Outcome eval(mlir::tensor::CollapseShapeOp op, const Call &call);
Outcome eval(mlir::tensor::ExpandShapeOp op, const Call &call);
Outcome eval(mlir::tensor::ExtractSliceOp op, const Call &call);
Outcome eval(mlir::tensor::ConcatOp op, const Call &call);

} // namespace gptc::reference

#endif // GPTC_LIB_REFERENCE_RULES_H
