//===- Elementwise.cpp - ops that work element by element -----------------===//
#include "gptc/Stepping/Elementwise.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace gptc;

bool gptc::isElementwise(Operation *op) {
  return op->getNumResults() == 1 &&
         (isa<gpt::GeluOp, gpt::SiluOp, gpt::SoftcapOp, gpt::ScaleOp,
              gpt::DropoutOp>(op) ||
          (isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
           op->hasTrait<OpTrait::Elementwise>() &&
           llvm::all_of(op->getOperandTypes(), [&](Type type) {
             return type == op->getResult(0).getType();
           })));
}

bool gptc::isElementwiseOnTensors(Operation *op) {
  return op && op->getNumResults() == 1 && op->getNumRegions() == 0 &&
         op->hasTrait<OpTrait::Elementwise>() &&
         isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) &&
         llvm::all_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>);
}

bool gptc::isLike(OpOperand &use) {
  return (isa<gpt::BroadcastOp>(use.getOwner()) &&
          use.getOperandNumber() > 0) ||
         isa<tensor::DimOp>(use.getOwner());
}

/// What `value` repeats; null if it repeats nothing.
static Value repeatedBy(Value value) {
  if (auto broadcast = value.getDefiningOp<gpt::BroadcastOp>())
    return broadcast.getX();
  if (auto splat = value.getDefiningOp<tensor::SplatOp>())
    if (auto extract = splat.getInput().getDefiningOp<tensor::ExtractOp>())
      if (auto type = cast<RankedTensorType>(extract.getTensor().getType());
          type.hasStaticShape() && type.getNumElements() == 1 &&
          type.getRank() <= splat.getType().getRank())
        return extract.getTensor();
  return {};
}

Value gptc::unbroadcast(Value value) {
  while (Value inner = repeatedBy(value))
    value = inner;
  return value;
}

double gptc::factorOf(gpt::ScaleOp op) {
  return static_cast<float>(op.getFactor().convertToDouble());
}

TypedAttr gptc::constantNumber(Value value) {
  if (auto splat = value.getDefiningOp<tensor::SplatOp>())
    value = splat.getInput();
  else if (auto broadcast = value.getDefiningOp<gpt::BroadcastOp>())
    value = broadcast.getX();
  Attribute attr;
  if (!matchPattern(value, m_Constant(&attr)))
    return {};
  if (auto elements = dyn_cast<DenseElementsAttr>(attr))
    attr = elements.isSplat() ? elements.getSplatValue<Attribute>() : nullptr;
  if (!isa_and_nonnull<FloatAttr, IntegerAttr>(attr))
    return {};
  return cast<TypedAttr>(attr);
}

std::optional<double> gptc::splatConstant(Value value) {
  auto number = dyn_cast_or_null<FloatAttr>(constantNumber(value));
  return number ? std::optional(number.getValueAsDouble()) : std::nullopt;
}
