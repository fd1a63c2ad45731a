//===- DimAnalysis.cpp - number the dynamic dimensions of an entry --------===//
//
// Refuses a `?` that must have one static size (the host could pass another
// one) and step entries of another form than DeriveStep makes.
//
//===----------------------------------------------------------------------===//
#include "gptc/Kernel/DimAnalysis.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::gpt;

bool gptc::isStepEntry(func::FuncOp entry) {
  return llvm::any_of(entry.getArgumentTypes(), llvm::IsaPred<KVCacheType>);
}

/// (tokens, positions, sequences, rows, cache), in this order.
static LogicalResult checkStepArguments(func::FuncOp entry) {
  ArrayRef<Type> types = entry.getArgumentTypes();
  bool expected = types.size() == 5 && isa<KVCacheType>(types[4]);
  for (unsigned i = 0; expected && i < 4; ++i) {
    auto ids = dyn_cast<RankedTensorType>(types[i]);
    expected = ids && ids.getRank() == 1 && ids.isDynamicDim(0) &&
               ids.getElementType().isInteger(32);
  }
  if (expected)
    return success();
  return entry.emitOpError("expected the arguments of a step entry to be "
                           "tokens, positions, sequences and rows (each "
                           "tensor<?xi32>) and the cache, got ")
         << entry.getFunctionType();
}

/// Keys and values that an op, or the kernel it calls, reads from the cache.
static ValueRange keysReadBy(Operation *op) {
  if (isa<KVReadOp>(op))
    return op->getResults();
  if (auto call = dyn_cast<CallOp>(op))
    if (auto kernel = SymbolTable::lookupNearestSymbolFrom<KernelOp>(
            op, call.getKernelAttr()))
      if (isa_and_nonnull<KVReadOp>(kernel.kernelOp()))
        return op->getResults();
  return {};
}

FailureOr<DimAnalysis> DimAnalysis::compute(func::FuncOp entry) {
  DimClasses classes;
  DimAnalysis analysis;
  Block &body = entry.getBody().front();
  bool step = isStepEntry(entry);
  if (step) {
    if (failed(checkStepArguments(entry)))
      return failure();
    classes.unite(body.getArgument(0), 0, body.getArgument(1), 0);
    classes.unite(body.getArgument(0), 0, body.getArgument(2), 0);
  }
  Value keys; // every layer reads as many
  for (Operation &op : body) {
    classes.addRulesOf(&op);
    for (Value read : keysReadBy(&op)) {
      if (keys)
        classes.unite(keys, 1, read, 1);
      keys = read;
    }
  }

  llvm::DenseMap<unsigned, int64_t> numbers;
  auto number = [&](Value value) -> LogicalResult {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type)
      return success();
    Sizes &sizes = analysis.sizesOf[value];
    for (int64_t axis = 0; axis < type.getRank(); ++axis) {
      std::optional<int64_t> extent = classes.staticSize(value, axis);
      if (!type.isDynamicDim(axis)) {
        sizes.push_back(type.getDimSize(axis));
        continue;
      }
      if (extent)
        return emitError(value.getLoc())
               << "expected dimension " << axis << " of " << type
               << " to be written as " << *extent
               << ", which another operand of its user has";
      auto [it, fresh] =
          numbers.try_emplace(classes.find(value, axis), analysis.numDims);
      analysis.numDims += fresh;
      sizes.push_back(-1 - it->second);
    }
    return success();
  };
  for (Value argument : body.getArguments())
    if (failed(number(argument)))
      return failure();
  for (Operation &op : body)
    for (Value result : op.getResults())
      if (failed(number(result)))
        return failure();

  if (step) {
    analysis.tokens = -1 - analysis.sizesOf[body.getArgument(0)][0];
    analysis.rows = -1 - analysis.sizesOf[body.getArgument(3)][0];
    if (keys)
      analysis.keys = -1 - analysis.sizesOf[keys][1];
  }
  return analysis;
}

Sizes DimAnalysis::sizes(Value value) const { return sizesOf.lookup(value); }

ArrayAttr gptc::kernelDims(KernelOp kernel) {
  DimClasses classes;
  Operation *op = kernel.kernelOp();
  classes.addRulesOf(op);
  llvm::DenseMap<unsigned, int64_t> numbers;
  SmallVector<Attribute> perValue;
  SmallVector<Value> values(kernel.getBody().getArguments());
  llvm::append_range(values, op->getResults());
  for (Value value : values) {
    SmallVector<int64_t> sizes;
    if (auto type = dyn_cast<RankedTensorType>(value.getType()))
      for (auto [axis, extent] : llvm::enumerate(type.getShape())) {
        if (!ShapedType::isDynamic(extent)) {
          sizes.push_back(extent);
          continue;
        }
        auto it = numbers.try_emplace(classes.find(value, axis), numbers.size())
                      .first;
        sizes.push_back(-1 - it->second);
      }
    perValue.push_back(DenseI64ArrayAttr::get(kernel.getContext(), sizes));
  }
  return ArrayAttr::get(kernel.getContext(), perValue);
}

SmallVector<ArrayRef<int64_t>> gptc::dimsOf(KernelOp kernel) {
  SmallVector<ArrayRef<int64_t>> dims;
  if (auto perValue = kernel->getAttrOfType<ArrayAttr>("gpt.dims"))
    for (auto sizes : perValue.getAsRange<DenseI64ArrayAttr>())
      dims.push_back(sizes);
  return dims;
}
