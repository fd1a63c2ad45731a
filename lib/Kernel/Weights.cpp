//===- Weights.cpp - weights as operands of kernels -----------------------===//
//
// Refuses slices with strides, and parts of matrices other than a range of
// output features or the same range of every head of them.
//
//===----------------------------------------------------------------------===//
#include "gptc/Kernel/Weights.h"
#include "gptc/Checkpoint/Storage.h"
#include "gptc/Dialect/Gpt/WeightPart.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::gpt;

ml_program::GlobalLoadConstOp gptc::loadOf(Value value) {
  if (Value whole = wholeOf(value.getDefiningOp()))
    value = whole;
  return value.getDefiningOp<ml_program::GlobalLoadConstOp>();
}

ml_program::GlobalOp gptc::globalOf(ml_program::GlobalLoadConstOp load) {
  return SymbolTable::lookupNearestSymbolFrom<ml_program::GlobalOp>(
      load, load.getGlobalAttr());
}

OperandUse gptc::useOf(OpOperand &operand) {
  return TypeSwitch<Operation *, OperandUse>(operand.getOwner())
      .Case([&](LinearOp op) {
        if (&operand == &op.getWeightMutable())
          return OperandUse::Panel;
        return &operand == &op.getXMutable() ? OperandUse::Activation
                                             : OperandUse::Vector;
      })
      .Case([&](EmbeddingOp op) {
        return &operand == &op.getTableMutable() ? OperandUse::Panel
                                                 : OperandUse::Activation;
      })
      .Case([&](FusedGemmOp op) {
        unsigned index = operand.getOperandNumber();
        unsigned weights = op.getWeights().size();
        if (index >= 1 && index < 1 + weights)
          return OperandUse::Panel;
        unsigned norm = op->getNumOperands() - !!op.getGamma() - !!op.getBeta();
        bool bias = index > weights && index <= weights + op.getBiases().size();
        return bias || index >= norm ? OperandUse::Vector
                                     : OperandUse::Activation;
      })
      .Case<LayerNormOp, RmsNormOp>([&](Operation *) {
        return operand.getOperandNumber() == 0 ? OperandUse::Activation
                                               : OperandUse::Vector;
      })
      .Default([&](Operation *) { return OperandUse::Activation; });
}

bool gptc::isInOut(OpOperand &operand) {
  if (auto linear = dyn_cast<LinearOp>(operand.getOwner()))
    return linear.getInOut();
  if (auto gemm = dyn_cast<FusedGemmOp>(operand.getOwner()))
    return gemm.getInOut()[operand.getOperandNumber() - 1];
  return false;
}

Storage gptc::storageOf(ml_program::GlobalOp global) {
  auto stored = global->getAttrOfType<StoredAttr>("gpt.stored");
  if (!stored)
    return Storage::F32;
  auto named = checkpoint::parseStorage(stringifyStorage(stored.getStorage()));
  auto packed =
      symbolizeStorage(checkpoint::storageName(checkpoint::packedFrom(*named)));
  return *packed;
}

OpOperand &gptc::operandOfArgument(KernelOp kernel, unsigned index) {
  return *kernel.getBody().getArgument(index).use_begin();
}

FailureOr<WeightView> gptc::weightOf(CallOp call, unsigned index) {
  Value value = call.getArgs()[index];
  ml_program::GlobalLoadConstOp load = loadOf(value);
  auto kernel = SymbolTable::lookupNearestSymbolFrom<KernelOp>(
      call, call.getKernelAttr());
  ml_program::GlobalOp global = load ? globalOf(load) : nullptr;
  if (!kernel || !global)
    return call.emitOpError("expected operand ")
           << index << " to be a weight and the kernel to exist";

  OpOperand &operand = operandOfArgument(kernel, index);
  auto whole = cast<RankedTensorType>(load.getType());
  auto type = cast<RankedTensorType>(value.getType());
  WeightView view;
  view.global = global;
  view.panel = useOf(operand) == OperandUse::Panel;
  view.inOut = view.panel && isInOut(operand);
  if (auto name = kernel.getArgAttrOfType<StringAttr>(index, "gpt.storage"))
    view.packed = *symbolizeStorage(name.getValue());
  unsigned features = view.inOut ? 1 : 0; // the axis of output features
  if (view.panel) {
    view.n = type.getDimSize(features);
    view.k = type.getDimSize(1 - features);
  } else {
    view.n = type.getNumElements();
  }

  Operation *part = value.getDefiningOp();
  view.shift = shiftOf(part).value_or(0);
  auto refuse = [&] {
    return part->emitOpError("expected output features (dimension ")
           << features << " of " << whole << ")";
  };
  if (auto heads = dyn_cast<HeadPartOp>(part)) {
    if (int64_t(heads.getAxis()) != features ||
        (!view.panel && whole.getRank() != 1))
      return refuse();
    view.n0 = heads.getFrom();
    view.take = heads.getTake();
    view.of = heads.getOf();
    return view;
  }
  auto slice = dyn_cast<tensor::ExtractSliceOp>(part);
  if (!slice)
    return view;
  if (!slice.hasUnitStride() || type.getRank() != whole.getRank() ||
      llvm::any_of(slice.getStaticOffsets(), ShapedType::isDynamic))
    return refuse();
  for (int64_t axis = 0; axis < whole.getRank(); ++axis)
    if (axis != features && type.getDimSize(axis) != whole.getDimSize(axis))
      return refuse();
  view.n0 = slice.getStaticOffsets()[features];
  if (!view.panel) // flattened: a slice of rows
    view.n0 *= whole.getNumElements() / whole.getDimSize(0);
  return view;
}
