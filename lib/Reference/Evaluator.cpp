//===- Evaluator.cpp - functions, calls and the choice of a rule ----------===//
//
// Values are released after their last use, so that a long function needs the
// memory of what is live. Operands and results are checked against their
// types here, once, for every rule.
//
//===----------------------------------------------------------------------===//

#include "gptc/Reference/Evaluator.h"
#include "Rules.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;
using namespace gptc::reference;
namespace gpt = gptc::gpt;

/// Calls within calls; a function that calls itself never ends.
static constexpr int maxDepth = 64;

/// Reports at `op` unless `tensor` is of `type`; `what` and `index` name it.
static LogicalResult checkType(Operation *op, Type type, const Tensor *tensor,
                               llvm::StringRef what, size_t index) {
  auto mismatch = [&](const llvm::Twine &got) {
    return op->emitError("expected ")
           << what << " " << index << " of type " << type << ", got " << got;
  };
  if (!tensor)
    return mismatch("no value");
  if (auto cache = dyn_cast<gpt::KVCacheType>(type)) {
    if (tensor->kind != Tensor::Kind::Cache || !tensor->cache)
      return mismatch("a tensor");
    const KVCache &held = *tensor->cache;
    if (held.layers() != cache.getLayers() ||
        held.heads() != cache.getHeads() ||
        held.headDim() != cache.getHeadDim())
      return mismatch("a cache of " +
                      shapeText({held.layers(), held.heads(), held.headDim()}));
    return success();
  }
  auto shaped = dyn_cast<RankedTensorType>(type);
  Type element = shaped ? shaped.getElementType() : type;
  if (!isa<FloatType>(element) && !element.isIntOrIndex())
    return op->emitError("no rule to evaluate values of type ") << type;
  if (tensor->kind == Tensor::Kind::Cache)
    return mismatch("a cache");
  if (isa<FloatType>(element) != (tensor->kind == Tensor::Kind::Float))
    return mismatch(tensor->kind == Tensor::Kind::Float ? "floats"
                                                        : "integers");
  llvm::ArrayRef<int64_t> extents =
      shaped ? shaped.getShape() : llvm::ArrayRef<int64_t>();
  bool agrees = extents.size() == tensor->shape.size();
  for (size_t d = 0; agrees && d < extents.size(); ++d)
    agrees =
        ShapedType::isDynamic(extents[d]) || extents[d] == tensor->shape[d];
  if (!agrees)
    return mismatch("shape " + shapeText(tensor->shape));
  if (elementCount(tensor->shape) != tensor->elements())
    return mismatch(std::to_string(tensor->elements()) +
                    " elements for shape " + shapeText(tensor->shape));
  return success();
}

static LogicalResult checkTypes(Operation *op, TypeRange types,
                                llvm::ArrayRef<TensorRef> tensors,
                                llvm::StringRef what) {
  if (types.size() != tensors.size())
    return op->emitError("expected ")
           << types.size() << " " << what << "s, got " << tensors.size();
  for (auto [i, type] : llvm::enumerate(types))
    if (failed(checkType(op, type, tensors[i].get(), what, i)))
      return failure();
  return success();
}

FailureOr<Results> Evaluator::loadGlobal(ml_program::GlobalLoadConstOp op) {
  auto global = SymbolTable::lookupNearestSymbolFrom<ml_program::GlobalOp>(
      op, op.getGlobalAttr());
  if (!global)
    return op.emitError("expected an ml_program.global named ")
           << op.getGlobalAttr();
  TensorRef tensor;
  std::optional<Attribute> value = global.getValue();
  if (value && !isa<ml_program::ExternAttr>(*value)) {
    TensorRef &held = denseGlobals[global];
    if (!held)
      held = constantTensor(global, *value);
    tensor = held;
  } else if (!weights) {
    return op.emitError("expected weights for '")
           << global.getSymName() << "', got none";
  } else {
    FailureOr<TensorRef> loaded = weights->load(global);
    if (failed(loaded))
      return failure();
    tensor = *loaded;
  }
  if (!tensor ||
      failed(checkType(global, global.getType(), tensor.get(), "weight", 0)))
    return failure();
  return Results{tensor};
}

FailureOr<Results> Evaluator::runRegion(Operation *callable, Region &body,
                                        llvm::ArrayRef<TensorRef> args) {
  if (!body.hasOneBlock())
    return callable->emitError("expected a body of one block to evaluate, got ")
           << body.getBlocks().size();
  Block &block = body.front();
  if (failed(checkTypes(callable, block.getArgumentTypes(), args, "argument")))
    return failure();
  if (depth >= maxDepth)
    return callable->emitError("expected at most ")
           << maxDepth << " calls within calls; does it call itself?";
  llvm::SaveAndRestore deeper(depth, depth + 1);

  llvm::DenseMap<Value, TensorRef> environment;
  // Uses still to come.
  llvm::DenseMap<Value, int64_t> pending;
  auto define = [&](Value value, TensorRef tensor) {
    if (value.use_empty())
      return;
    environment[value] = std::move(tensor);
    pending[value] = std::distance(value.use_begin(), value.use_end());
  };
  for (auto [argument, tensor] : llvm::zip(block.getArguments(), args))
    define(argument, tensor);

  for (Operation &op : block) {
    // Nobody needs the weight to exist.
    if (isa<ml_program::GlobalLoadConstOp>(op) && op.use_empty())
      continue;
    llvm::SmallVector<TensorRef> operands;
    for (Value operand : op.getOperands())
      operands.push_back(environment.lookup(operand));
    if (isa<func::ReturnOp, gpt::ReturnOp>(op)) {
      if (failed(checkTypes(&op, op.getOperandTypes(), operands, "result")))
        return failure();
      return Results(operands.begin(), operands.end());
    }
    FailureOr<Results> results = evalChecked(&op, operands);
    if (failed(results))
      return failure();
    for (Value operand : op.getOperands())
      if (--pending[operand] == 0)
        environment.erase(operand);
    for (auto [value, tensor] : llvm::zip(op.getResults(), *results))
      define(value, tensor);
  }
  return callable->emitError("expected a body that ends in a return");
}

FailureOr<Results> Evaluator::dispatch(Operation *op,
                                       llvm::ArrayRef<TensorRef> operands) {
  Call call{op, operands, layerBase, {precision, cached}};
  if (ScalarFunction function = scalarFunction(op))
    return evalElementwise(call, function);

  auto rule = [&](auto typed) -> Outcome { return eval(typed, call); };
  return llvm::TypeSwitch<Operation *, Outcome>(op)
      .Case<gpt::EmbeddingOp, gpt::PositionsOp, gpt::SelectRowsOp,
            gpt::LinearOp, gpt::MatmulOp, gpt::SplitOp, gpt::SplitHeadsOp,
            gpt::MergeHeadsOp, gpt::HeadPartOp, gpt::ArgmaxOp, gpt::DropoutOp,
            gpt::LayerNormOp, gpt::RmsNormOp, gpt::RopeOp, gpt::RopeTableOp,
            gpt::RotateOp>(rule)
      .Case<gpt::BroadcastOp, gpt::AlibiOp, gpt::CausalMaskOp, gpt::MaskOp,
            gpt::ScaleOp, gpt::SoftmaxOp, gpt::LogSoftmaxOp,
            gpt::FlashAttentionOp, gpt::KVAppendOp, gpt::KVReadOp,
            gpt::FusedGemmOp, gpt::MergeArgmaxOp>(rule)
      .Case<tensor::DimOp, tensor::SplatOp, tensor::EmptyOp, tensor::CastOp,
            tensor::ExtractOp, tensor::CollapseShapeOp, tensor::ExpandShapeOp,
            tensor::ExtractSliceOp, tensor::ConcatOp>(rule)
      .Case([&](arith::ConstantOp constant) -> Outcome {
        TensorRef value = constantTensor(op, constant.getValue());
        if (!value)
          return failure();
        return Results{value};
      })
      .Case([&](ml_program::GlobalLoadConstOp load) -> Outcome {
        return loadGlobal(load);
      })
      .Case([&](gpt::CallOp call) -> Outcome {
        auto kernel = SymbolTable::lookupNearestSymbolFrom<gpt::KernelOp>(
            op, call.getKernelAttr());
        if (!kernel)
          return op->emitError("expected a gpt.kernel named ")
                 << call.getKernelAttr();
        llvm::SaveAndRestore base(layerBase,
                                  int64_t(call.getLayer().value_or(0)));
        return runRegion(kernel, kernel.getBody(), operands);
      })
      .Case([&](func::CallOp call) -> Outcome {
        auto callee = SymbolTable::lookupNearestSymbolFrom<func::FuncOp>(
            op, call.getCalleeAttr());
        if (!callee)
          return op->emitError("expected a function named ")
                 << call.getCalleeAttr();
        return run(callee, operands);
      })
      .Default([](Operation *op) -> Outcome {
        return op->emitError("no rule to evaluate '") << op->getName() << "'";
      });
}

FailureOr<Results> Evaluator::evalChecked(Operation *op,
                                          llvm::ArrayRef<TensorRef> operands) {
  if (failed(checkTypes(op, op->getOperandTypes(), operands, "operand")))
    return failure();
  FailureOr<Results> results = dispatch(op, operands);
  if (failed(results) ||
      failed(checkTypes(op, op->getResultTypes(), *results, "result")))
    return failure();
  return results;
}

FailureOr<Results> Evaluator::run(func::FuncOp function,
                                  llvm::ArrayRef<TensorRef> args) {
  if (function.isDeclaration())
    return function.emitError("expected a function with a body to evaluate");
  return runRegion(function, function.getBody(), args);
}

FailureOr<Results> Evaluator::evalOp(Operation *op,
                                     llvm::ArrayRef<TensorRef> operands) {
  if (auto kernel = dyn_cast<gpt::KernelOp>(op))
    return runRegion(kernel, kernel.getBody(), operands);
  return evalChecked(op, operands);
}
