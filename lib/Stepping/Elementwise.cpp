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

std::optional<double> gptc::splatConstant(Value value) {
  if (auto splat = value.getDefiningOp<tensor::SplatOp>())
    value = splat.getInput();
  else if (auto broadcast = value.getDefiningOp<gpt::BroadcastOp>())
    value = broadcast.getX();
  Attribute attr;
  if (!matchPattern(value, m_Constant(&attr)))
    return std::nullopt;
  if (auto scalar = dyn_cast<FloatAttr>(attr))
    return scalar.getValueAsDouble();
  auto elements = dyn_cast<DenseFPElementsAttr>(attr);
  if (!elements || !elements.isSplat())
    return std::nullopt;
  return elements.getSplatValue<FloatAttr>().getValueAsDouble();
}
