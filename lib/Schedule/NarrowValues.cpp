//===- NarrowValues.cpp - gpt-narrow-values -------------------------------===//
//
// Matches:  %n = gpt.call @rms_norm(%x, %g)
//           %y = gpt.call @gemm(%n, %w)       and no other use of %n
// Produces: the same calls, of kernels with {gpt.element = bf16} at the norm's
//           result and the GEMM's first argument
//
// GEMMs and attention of many rows round these inputs as they load them, so
// rounding them as they are stored gives the same bits and half the traffic.
// Few rows then see rounded inputs too. An element belongs to a kernel, not to
// a call: what one value joins is one class, all narrow or all not, and kernels
// are not copied.
//
// May change: `gpt.element` of kernels, nothing else.
//
//===----------------------------------------------------------------------===//
#include "gptc/Kernel/Workspace.h"
#include "gptc/Schedule/CudaSchedule.h"
#include "gptc/Schedule/Passes.h"
#include "llvm/ADT/EquivalenceClasses.h"

using namespace mlir;
using namespace gptc;

namespace gptc {
#define GEN_PASS_DEF_NARROWVALUES
#include "gptc/Schedule/Passes.h.inc"
} // namespace gptc

namespace {
/// An argument or result of a kernel: its operation and the number, results
/// behind arguments.
using Port = std::pair<Operation *, unsigned>;

struct NarrowValues : gptc::impl::NarrowValuesBase<NarrowValues> {
  using NarrowValuesBase::NarrowValuesBase;

  void runOnOperation() override;

private:
  void visit(gpt::CallOp call);
  void visitResult(gpt::CallOp call, gpt::KernelOp kernel, OpResult result);

  llvm::EquivalenceClasses<Port> joined;
  llvm::DenseSet<Port> wide; ///< a port that cannot be narrow
  SmallVector<Port> values;  ///< of each call's result
};
} // namespace

void NarrowValues::visitResult(gpt::CallOp call, gpt::KernelOp kernel,
                               OpResult result) {
  Port from{kernel, unsigned(kernel.getArgumentTypes().size() +
                             result.getResultNumber())};
  joined.insert(from);
  values.push_back(from);
  if (!canBeNarrow(kernel, from.second))
    wide.insert(from);
  for (OpOperand &use : result.getUses()) {
    auto reader = dyn_cast<gpt::CallOp>(use.getOwner());
    if (!reader) { // the entry's result
      wide.insert(from);
      continue;
    }
    // A call's operands are its kernel's arguments.
    Port to{
        SymbolTable::lookupNearestSymbolFrom(reader, reader.getKernelAttr()),
        use.getOperandNumber()};
    joined.unionSets(from, to);
  }
}

void NarrowValues::visit(gpt::CallOp call) {
  auto kernel = SymbolTable::lookupNearestSymbolFrom<gpt::KernelOp>(
      call, call.getKernelAttr());
  for (auto [number, value] : llvm::enumerate(call.getArgs())) {
    Port port{kernel, unsigned(number)};
    joined.insert(port);
    // An entry's argument, or a weight.
    if (!value.getDefiningOp<gpt::CallOp>() ||
        !canBeNarrow(kernel, port.second))
      wide.insert(port);
  }
  for (OpResult result : call->getOpResults())
    visitResult(call, kernel, result);
}

void NarrowValues::runOnOperation() {
  Builder builder(&getContext());
  if (element != "bf16" && element != "f16") {
    getOperation().emitError("expected bf16 or f16 as the element of narrow "
                             "values, got '")
        << element << "'";
    return signalPassFailure();
  }
  auto type = TypeAttr::get(element == "bf16" ? Type(builder.getBF16Type())
                                              : Type(builder.getF16Type()));
  getOperation().walk([&](gpt::CallOp call) { visit(call); });
  llvm::DenseSet<Port> wideLeaders;
  for (Port port : wide)
    wideLeaders.insert(joined.getLeaderValue(port));
  auto isNarrow = [&](Port port) {
    return joined.contains(port) &&
           !wideLeaders.contains(joined.getLeaderValue(port));
  };
  for (auto kernel : getOperation().getOps<gpt::KernelOp>()) {
    unsigned arguments = kernel.getArgumentTypes().size();
    for (unsigned i = 0; i < arguments; ++i)
      if (isNarrow({kernel, i}))
        kernel.setArgAttr(i, "gpt.element", type);
    for (unsigned i = 0; i < kernel.getResultTypes().size(); ++i)
      if (isNarrow({kernel, arguments + i}))
        kernel.setResultAttr(i, "gpt.element", type);
  }
  numNarrow += llvm::count_if(values, isNarrow);
}
