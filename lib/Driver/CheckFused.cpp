//===- CheckFused.cpp - what no kernel can be generated for ---------------===//
//
// Between fusion and outlining. Refuses constant tensors as operands of ops
// other than elementwise ones, whose kernels hold the value in a register where
// others read memory, and what repeats (masks, gpt.broadcast), whose kernels
// have arrays of their own.
//
//===----------------------------------------------------------------------===//
#include "Phases.h"
#include "gptc/Kernel/Weights.h"
#include "gptc/Stepping/Elementwise.h"

using namespace mlir;
using namespace gptc;

static bool isRepeated(OpOperand &operand) {
  Operation *op = operand.getOwner();
  if (isa<gpt::BroadcastOp>(op))
    return true;
  if (auto mask = dyn_cast<gpt::MaskOp>(op))
    return &operand == &mask.getMaskMutable();
  auto attention = dyn_cast<gpt::FlashAttentionOp>(op);
  return attention && llvm::is_contained(attention.getMasks(), operand.get());
}

static LogicalResult checkOperands(Operation *op) {
  if (isElementwise(op) || isa<func::ReturnOp>(op) ||
      isa<arith::ArithDialect, math::MathDialect>(op->getDialect()))
    return success();
  for (OpOperand &operand : op->getOpOperands())
    if (!isRepeated(operand) && isa<TensorType>(operand.get().getType()) &&
        operand.get().getDefiningOp<arith::ConstantOp>())
      return op->emitOpError("expected operand ")
             << operand.getOperandNumber() << " to be "
             << (useOf(operand) == OperandUse::Activation
                     ? "an argument, a weight (ml_program.global) or computed"
                     : "a weight (a loaded ml_program.global)")
             << ", got a constant, which only elementwise ops take";
  return success();
}

LogicalResult gptc::checkFused(ModuleOp module) {
  return failure(
      module.walk([](Operation *op) -> WalkResult { return checkOperands(op); })
          .wasInterrupted());
}
