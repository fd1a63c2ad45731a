//===- WeightPart.cpp - weights that are made of others -------------------===//

#include "gptc/Dialect/Gpt/WeightPart.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace gptc;

namespace {
struct Shift {
  Value vector;
  double number;
};
} // namespace

static std::optional<Shift> matchShift(Operation *op) {
  auto add = dyn_cast_or_null<arith::AddFOp>(op);
  auto type = add ? dyn_cast<RankedTensorType>(add.getType()) : nullptr;
  if (!type || type.getRank() != 1)
    return std::nullopt;
  for (auto [vector, constant] : {std::pair(add.getLhs(), add.getRhs()),
                                  std::pair(add.getRhs(), add.getLhs())}) {
    DenseFPElementsAttr numbers;
    if (!vector.getDefiningOp<ml_program::GlobalLoadConstOp>() ||
        !matchPattern(constant, m_Constant(&numbers)) || !numbers.isSplat())
      continue;
    llvm::APFloat number = numbers.getSplatValue<llvm::APFloat>();
    // Adding 0 would change -0 only, which packing leaves alone.
    if (number.isFinite() && !number.isZero())
      return Shift{vector, number.convertToDouble()};
  }
  return std::nullopt;
}

Value gptc::wholeOf(Operation *op) {
  if (isa_and_nonnull<tensor::ExtractSliceOp, gpt::HeadPartOp>(op))
    return op->getOperand(0);
  std::optional<Shift> shift = matchShift(op);
  return shift ? shift->vector : Value();
}

std::optional<double> gptc::shiftOf(Operation *op) {
  std::optional<Shift> shift = matchShift(op);
  return shift ? std::optional(shift->number) : std::nullopt;
}
