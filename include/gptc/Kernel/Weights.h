//===- Weights.h - weights as operands of kernels ---------------*- C++ -*-===//
//
// A weight is a loaded ml_program.global, a static slice or gpt.head_part of
// one (a section of a packed projection), or a vector and a number that is
// added to it. How it lies in memory follows from the operand that
// it is used as: matrices that are multiplied and tables that are gathered from
// lie in panels, everything else as plain f32 values (Format/WeightLayout.h).
//
//===----------------------------------------------------------------------===//
#pragma once
#include "gptc/Dialect/Gpt/Gpt.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace gptc {

/// The load that `value` is, or is made of (WeightPart.h); null for anything
/// else.
mlir::ml_program::GlobalLoadConstOp loadOf(mlir::Value value);

/// The global of a load; null if there is none of that name.
mlir::ml_program::GlobalOp globalOf(mlir::ml_program::GlobalLoadConstOp load);

/// How an op takes an operand.
enum class OperandUse {
  Activation, // a tensor that the entry computes
  Vector,     // a norm scale or a bias: a weight, f32 values with padding
  Panel,      // a matrix or a table: a weight in panels
};
OperandUse useOf(mlir::OpOperand &operand);

/// Whether a Panel operand is stored [in, out].
bool isInOut(mlir::OpOperand &operand);

/// The storage that packers and kernels see of a weight: the one that
/// `gpt.stored` of the global names, or what checkpoint::packedFrom makes of
/// it; f32 without the attribute.
gpt::Storage storageOf(mlir::ml_program::GlobalOp global);

/// The op operand that argument `index` of a kernel becomes.
mlir::OpOperand &operandOfArgument(gpt::KernelOp kernel, unsigned index);

/// n output features from n0 on, over k inputs, of a global: consecutive ones,
/// or `take` of every `of` if take is not 0. For a vector, or a
/// weight that an op takes like an activation, k is 1 and n counts elements.
/// `shift` is added to each element.
struct WeightView {
  mlir::ml_program::GlobalOp global;
  int64_t n0 = 0, n = 0, k = 1, take = 0, of = 0;
  double shift = 0;
  bool panel = false, inOut = false;
  gpt::Storage packed = gpt::Storage::F32;
};

/// The weight that operand `index` of a call is. Fails, with a diagnostic at
/// the call, on a slice that no layout can express.
mlir::FailureOr<WeightView> weightOf(gpt::CallOp call, unsigned index);

} // namespace gptc
