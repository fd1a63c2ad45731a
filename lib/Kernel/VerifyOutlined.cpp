//===- VerifyOutlined.cpp - what stands at the room's exit ----------------===//
//
// After outlining an entry is loads, parts of loads, calls and a return, and
// every kernel holds one op and knows its dimensions.
//
//===----------------------------------------------------------------------===//
#include "gptc/Dialect/Gpt/WeightPart.h"
#include "gptc/Kernel/DimAnalysis.h"
#include "gptc/Kernel/Passes.h"
#include "gptc/Kernel/Weights.h"

namespace gptc {
#define GEN_PASS_DEF_VERIFYOUTLINED
#include "gptc/Kernel/Passes.h.inc"
} // namespace gptc

using namespace mlir;
using namespace gptc;
using namespace gptc::gpt;

namespace {
constexpr llvm::StringLiteral culprit = "gpt-outline-kernels should have "
                                        "removed it";

LogicalResult verifyEntry(func::FuncOp entry) {
  for (Operation &op : entry.getBody().front()) {
    bool view = wholeOf(&op) && loadOf(op.getResult(0));
    // The number that is added to a weight.
    view |= isa<arith::ConstantOp>(op) &&
            llvm::all_of(op.getUsers(),
                         [](Operation *user) { return wholeOf(user); });
    if (view || isa<ml_program::GlobalLoadConstOp, CallOp, func::ReturnOp>(op))
      continue;
    InFlightDiagnostic diagnostic =
        op.emitOpError("stands in an entry after outlining; expected loads, "
                       "parts of loads, calls and a return");
    diagnostic.attachNote() << culprit;
    return diagnostic;
  }
  return success();
}

LogicalResult verifyKernel(KernelOp kernel) {
  if (!kernel.kernelOp())
    return kernel.emitOpError("expected one op besides constants");
  size_t values =
      kernel.getNumArguments() + kernel.getFunctionType().getNumResults();
  size_t described = dimsOf(kernel).size();
  if (described != values)
    return kernel.emitOpError("expected gpt.dims to describe ")
           << values << " arguments and results, got " << described;
  return success();
}

struct VerifyOutlined : gptc::impl::VerifyOutlinedBase<VerifyOutlined> {
  void runOnOperation() override {
    for (Operation &op : getOperation().getOps()) {
      auto entry = dyn_cast<func::FuncOp>(op);
      auto kernel = dyn_cast<KernelOp>(op);
      if ((entry && !entry.isExternal() && failed(verifyEntry(entry))) ||
          (kernel && failed(verifyKernel(kernel))))
        return signalPassFailure();
    }
  }
};
} // namespace
