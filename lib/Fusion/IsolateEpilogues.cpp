//===- IsolateEpilogues.cpp - constants back into the epilogues -----------===//
//
// Matches:  %c = arith.constant 0.5 : f32
//           gpt.fused_gemm ... { (%acc) ... arith.mulf %acc, %c ... }
// Produces: gpt.fused_gemm ... { (%acc) %c = arith.constant 0.5 ... }
//
// Last in the room: canonicalize hoists constants out of regions, and a kernel
// holds the fused op alone.
//
//===----------------------------------------------------------------------===//
#include "gptc/Fusion/Passes.h"

using namespace mlir;

namespace gptc {
#define GEN_PASS_DEF_ISOLATEEPILOGUES
#include "gptc/Fusion/Passes.h.inc"

namespace {
struct IsolateEpilogues : impl::IsolateEpiloguesBase<IsolateEpilogues> {
  void runOnOperation() override {
    getOperation()->walk([](gpt::FusedGemmOp gemm) {
      for (Region &region : gemm.getEpilogues()) {
        llvm::MapVector<Operation *, Operation *> clones;
        region.walk([&](Operation *op) {
          for (OpOperand &operand : op->getOpOperands()) {
            Operation *source = operand.get().getDefiningOp();
            if (!source || region.isAncestor(source->getParentRegion()) ||
                !source->hasTrait<OpTrait::ConstantLike>())
              continue;
            Operation *&clone = clones[source];
            if (!clone) {
              clone = source->clone();
              region.front().push_front(clone);
            }
            operand.set(clone->getResult(0));
          }
        });
      }
    });
  }
};
} // namespace
} // namespace gptc
