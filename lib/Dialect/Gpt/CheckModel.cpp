//===- CheckModel.cpp - what passes rely on -------------------------------===//
#include "gptc/Dialect/Gpt/CheckModel.h"
#include "gptc/Dialect/Gpt/Gpt.h"

using namespace mlir;
using namespace gptc;

static LogicalResult checkFunction(func::FuncOp function) {
  if (function.isExternal())
    return success();
  if (!function.getBody().hasOneBlock())
    return function.emitOpError(
        "expected one block: an entry has no control flow");
  for (Operation &op : function.getBody().front())
    if (op.getNumRegions() && !isa<gpt::FusedGemmOp>(op))
      return op.emitOpError("has no kernel: expected gpt ops, and arith or "
                            "math ops on tensors, between loads and the "
                            "return");
  return success();
}

LogicalResult gptc::checkModel(ModuleOp module) {
  for (Operation &op : *module.getBody()) {
    if (!isa<func::FuncOp, ml_program::GlobalOp, gpt::KernelOp>(op))
      return op.emitOpError("expected functions and weights (func.func, "
                            "ml_program.global) at the top level of a model");
    if (auto function = dyn_cast<func::FuncOp>(op))
      if (failed(checkFunction(function)))
        return failure();
  }
  return success();
}
