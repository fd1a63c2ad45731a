//===- OutlineKernels.cpp - compute ops become calls of kernels -----------===//
//
// Matches:  any gpt, arith or math op on tensors in an entry
// Produces: gpt.call @name(operands) and one gpt.kernel per distinct op
//
// Two ops are one kernel if they print alike once their weights and the layer
// of the KV cache are arguments: compile time does not grow with layers. Before
// that, sizes are refined (RefineSizes.cpp) and results made tensors of their
// own.
//
// tensor.expand_shape by dimensions of 1 is a copy, without the sizes it is
// given: a kernel knows them.
//
// Refuses, at the op: control flow, calls, other dialects, scalars, constants
// that are no splats (masks apart), sizes of 0 or beyond 32 bits, and matrices
// or biases that are no globals (a kernel reads them packed, which a function's
// argument is not).
//
//===----------------------------------------------------------------------===//
#include "KernelNames.h"
#include "gptc/Dialect/Gpt/WeightPart.h"
#include "gptc/Kernel/DimAnalysis.h"
#include "gptc/Kernel/Passes.h"
#include "gptc/Kernel/Weights.h"
#include "llvm/ADT/StringMap.h"

namespace gptc {
#define GEN_PASS_DEF_OUTLINEKERNELS
#include "gptc/Kernel/Passes.h.inc"
} // namespace gptc

using namespace mlir;
using namespace gptc;
using namespace gptc::gpt;

namespace {
/// What stays in the entry: loads, weights made of loads, constants (cloned
/// into the kernels that use them), calls and the return.
bool staysInEntry(Operation &op) {
  if (wholeOf(&op))
    return loadOf(op.getResult(0)) != nullptr;
  return isa<ml_program::GlobalLoadConstOp, arith::ConstantOp, CallOp,
             func::ReturnOp>(op);
}

/// Kernels are generated for sizes of at least 1, and 32 bits hold any that a
/// model has.
LogicalResult checkSizes(Operation &op, TypeRange types) {
  for (Type type : types)
    if (auto tensor = dyn_cast<RankedTensorType>(type))
      for (int64_t size : tensor.getShape())
        if (!ShapedType::isDynamic(size) && (size < 1 || size > INT32_MAX))
          return op.emitOpError("expected dimensions from 1 to ")
                 << INT32_MAX << ", got " << type;
  return success();
}

/// Whether kernels read the operand from an array of their own when it is a
/// constant.
bool takesConstantTensor(OpOperand &operand) {
  Operation *op = operand.getOwner();
  if (auto mask = dyn_cast<MaskOp>(op))
    return &operand == &mask.getMaskMutable();
  if (auto attention = dyn_cast<FlashAttentionOp>(op))
    return llvm::is_contained(attention.getMasks(), operand.get());
  return isa<BroadcastOp>(op);
}

/// Whether the result has dimensions of 1 more than the operand, no others.
bool addsOnes(tensor::ExpandShapeOp op) {
  ArrayRef<int64_t> shape = op.getResultType().getShape();
  return llvm::all_of(op.getReassociationIndices(), [&](auto &group) {
    return llvm::count_if(group,
                          [&](int64_t axis) { return shape[axis] != 1; }) <= 1;
  });
}

/// Takes away the sizes that such ops are given, and what reads them; one of a
/// constant becomes a constant.
void dropGivenSizes(Block &body) {
  SmallVector<tensor::ExpandShapeOp> ops(body.getOps<tensor::ExpandShapeOp>());
  for (tensor::ExpandShapeOp op : llvm::make_filter_range(ops, addsOnes)) {
    OpBuilder builder(op);
    SmallVector<Value> folded;
    if (succeeded(builder.tryFold(op, folded)) && !folded.empty()) {
      op.replaceAllUsesWith(folded.front());
      op.erase();
      continue;
    }
    Value none = arith::ConstantIndexOp::create(builder, op.getLoc(), 0);
    for (OpOperand &size : op.getOutputShapeMutable())
      size.set(none);
  }
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isa<tensor::DimOp>(op) && op.use_empty())
      op.erase();
}

LogicalResult checkOp(Operation &op) {
  auto expand = dyn_cast<tensor::ExpandShapeOp>(op);
  if (!(expand ? addsOnes(expand)
               : isa<GptDialect, arith::ArithDialect, math::MathDialect>(
                     op.getDialect())) ||
      op.getNumResults() == 0)
    return op.emitOpError("has no kernel: expected gpt ops, arith or math ops "
                          "on tensors, or tensor.expand_shape by dimensions "
                          "of 1, between loads and the return");
  if (isa<HeadPartOp>(op))
    return op.emitOpError("has no kernel: expected part of a weight (a loaded "
                          "ml_program.global); cut activations with "
                          "gpt.split_heads and gpt.split");
  for (Type type : op.getResultTypes())
    if (!isa<RankedTensorType, KVCacheType>(type))
      return op.emitOpError("has no kernel: expected tensors, got ") << type;
  if (failed(checkSizes(op, op.getOperandTypes())) ||
      failed(checkSizes(op, op.getResultTypes())))
    return failure();
  for (OpOperand &operand : op.getOpOperands()) {
    DenseElementsAttr constant;
    if (matchPattern(operand.get(), m_Constant(&constant))) {
      // An array of the kernel; elementwise ops take one number.
      if (takesConstantTensor(operand))
        continue;
      if (!constant.isSplat())
        return op.emitOpError("expected constant operand ")
               << operand.getOperandNumber()
               << " to have one value; write other constants as "
                  "ml_program.global";
      continue;
    }
    if (useOf(operand) != OperandUse::Activation && !loadOf(operand.get()))
      return op.emitOpError("expected operand ")
             << operand.getOperandNumber()
             << " to be a weight (a loaded ml_program.global, or a slice of "
                "one): kernels read it packed"
             << (useOf(operand) == OperandUse::Panel
                     ? "; multiply activations with gpt.matmul"
                     : "");
  }
  return success();
}

class Outliner {
public:
  Outliner(ModuleOp module, bool dequantize, StringRef precision)
      : module(module), symbols(module), dequantize(dequantize),
        int8(precision == "int8") {
    if ((int8 || precision == "bf16") && !dequantize)
      findFactors();
  }

  LogicalResult run(func::FuncOp entry);
  unsigned numCalls = 0, numKernels = 0;

private:
  KernelOp kernelFor(Operation &op);
  Storage storageIn(OpOperand &operand);
  void findFactors();

  ModuleOp module;
  SymbolTable symbols;
  bool dequantize, int8;
  llvm::DenseSet<Operation *> factors; // globals that GEMMs round
  llvm::StringMap<KernelOp> kernels;   // by their text
};

/// Tables that a GEMM reads as well lie once, rounded.
void Outliner::findFactors() {
  module.walk([&](Operation *op) {
    if (!isa<LinearOp, FusedGemmOp>(op))
      return;
    for (OpOperand &operand : op->getOpOperands()) {
      auto load = loadOf(operand.get());
      if (!load || useOf(operand) != OperandUse::Panel)
        continue;
      ml_program::GlobalOp global = globalOf(load);
      if (global)
        factors.insert(global);
    }
  });
}

/// The element format in which the kernel reads an operand.
Storage Outliner::storageIn(OpOperand &operand) {
  ml_program::GlobalLoadConstOp load = loadOf(operand.get());
  if (!load || dequantize || useOf(operand) != OperandUse::Panel)
    return Storage::F32;
  ml_program::GlobalOp global = globalOf(load);
  Storage storage = global ? storageOf(global) : Storage::F32;
  if (!factors.contains(global))
    return storage;
  if (storage <= Storage::BF16)
    return int8 ? Storage::I8x4 : Storage::BF16x2;
  return int8 && storage == Storage::Q8_0 ? Storage::Q8_0x4 : storage;
}

/// The kernel of `op`, made if there is none that prints alike.
KernelOp Outliner::kernelFor(Operation &op) {
  MLIRContext *context = op.getContext();
  SmallVector<Type> inputs;
  SmallVector<Location> locations;
  SmallVector<Storage> storages;
  SmallVector<DictionaryAttr> attributes;
  SmallVector<Operation *> constants(op.getNumOperands());
  for (OpOperand &operand : op.getOpOperands()) {
    if (auto constant = operand.get().getDefiningOp<arith::ConstantOp>()) {
      constants[operand.getOperandNumber()] = constant;
      continue;
    }
    inputs.push_back(operand.get().getType());
    locations.push_back(operand.get().getLoc());
    NamedAttrList list;
    if (loadOf(operand.get())) {
      Storage storage = storageIn(operand);
      storages.push_back(storage);
      list.set("gpt.storage",
               StringAttr::get(context, stringifyStorage(storage)));
    }
    attributes.push_back(list.getDictionary(context));
  }

  OpBuilder builder(context);
  builder.setInsertionPointToEnd(module.getBody());
  std::string name = kernelName(&op, storages);
  OperationState state(op.getLoc(), KernelOp::getOperationName());
  state.addAttribute(SymbolTable::getSymbolAttrName(),
                     builder.getStringAttr(name));
  state.addAttribute(
      KernelOp::getFunctionTypeAttrName(state.name),
      TypeAttr::get(builder.getFunctionType(inputs, op.getResultTypes())));
  state.addRegion();
  auto kernel = cast<KernelOp>(builder.create(state));
  kernel.setAllArgAttrs(attributes);

  Block *body = builder.createBlock(&kernel.getBody(), {}, inputs, locations);
  SmallVector<Value> operands;
  unsigned argument = 0;
  for (Operation *constant : constants)
    operands.push_back(constant ? Value(builder.clone(*constant)->getResult(0))
                                : Value(body->getArgument(argument++)));
  Operation *clone = builder.clone(op);
  clone->setOperands(operands);
  if (clone->hasAttr("layer"))
    clone->setAttr("layer", builder.getI64IntegerAttr(0));
  ReturnOp::create(builder, op.getLoc(), clone->getResults());
  kernel->setAttr("gpt.dims", kernelDims(kernel));

  // The text without name and locations is the identity.
  std::string text;
  llvm::raw_string_ostream stream(text);
  kernel.setSymName("kernel");
  kernel->print(stream, OpPrintingFlags().printGenericOpForm().useLocalScope());
  auto [it, fresh] = kernels.try_emplace(text, kernel);
  if (!fresh) {
    kernel.erase();
    return it->second;
  }
  kernel.setSymName(name);
  kernel->remove();
  symbols.insert(kernel, module.getBody()->end()); // numbers a clashing name
  ++numKernels;
  return kernel;
}

/// Every result is a tensor of its own: an argument that is returned, a shifted
/// weight, and a value that is returned again, are copied.
static void copyResults(func::FuncOp entry) {
  Operation *exit = entry.getBody().front().getTerminator();
  OpBuilder builder(exit);
  llvm::SmallPtrSet<Value, 4> returned;
  for (OpOperand &operand : exit->getOpOperands()) {
    Value value = operand.get();
    if (!isa<RankedTensorType>(value.getType()))
      continue;
    bool again = !returned.insert(value).second;
    if (again || isa<BlockArgument>(value) || shiftOf(value.getDefiningOp()))
      operand.set(BroadcastOp::create(builder, value.getLoc(), value.getType(),
                                      value, value));
  }
}

LogicalResult Outliner::run(func::FuncOp entry) {
  if (!entry.getBody().hasOneBlock())
    return entry.emitOpError(
        "expected one block: an entry has no control flow");
  if (entry.getNumResults() == 0)
    return entry.emitOpError(
        "expected a result: an entry without one computes nothing");
  if (failed(refineSizes(entry)))
    return failure();
  copyResults(entry);
  dropGivenSizes(entry.getBody().front());
  for (Operation &op : llvm::make_early_inc_range(entry.getBody().front())) {
    if (staysInEntry(op))
      continue;
    if (failed(checkOp(op)))
      return failure();
    KernelOp kernel = kernelFor(op);
    SmallVector<Value> arguments;
    for (Value operand : op.getOperands())
      if (!operand.getDefiningOp<arith::ConstantOp>())
        arguments.push_back(operand);
    OpBuilder builder(&op);
    OperationState state(op.getLoc(), CallOp::getOperationName());
    state.addOperands(arguments);
    state.addTypes(op.getResultTypes());
    state.addAttribute(CallOp::getKernelAttrName(state.name),
                       FlatSymbolRefAttr::get(kernel.getSymNameAttr()));
    if (auto layer = op.getAttrOfType<IntegerAttr>("layer"))
      state.addAttribute(CallOp::getLayerAttrName(state.name), layer);
    Operation *call = builder.create(state);
    op.replaceAllUsesWith(call->getResults());
    op.erase();
    ++numCalls;
  }
  for (Operation &op :
       llvm::make_early_inc_range(llvm::reverse(entry.getBody().front())))
    if (op.use_empty() &&
        (wholeOf(&op) ||
         isa<ml_program::GlobalLoadConstOp, arith::ConstantOp>(op)))
      op.erase();
  return success();
}

struct OutlineKernels : gptc::impl::OutlineKernelsBase<OutlineKernels> {
  using OutlineKernelsBase::OutlineKernelsBase;

  void runOnOperation() override {
    Outliner outliner(getOperation(), dequantize, precision);
    auto entries = llvm::to_vector(getOperation().getOps<func::FuncOp>());
    for (func::FuncOp entry : entries)
      if (!entry.isExternal() && failed(outliner.run(entry)))
        return signalPassFailure();
    numCalls += outliner.numCalls;
    numKernels += outliner.numKernels;
  }
};
} // namespace
