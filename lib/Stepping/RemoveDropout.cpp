//===- RemoveDropout.cpp - drop dropout -----------------------------------===//
//
// Matches:  %y = gpt.dropout %x p 0.1
// Produces: %x in place of %y
//
// Always: the product only runs inference.
//
//===----------------------------------------------------------------------===//
#include "gptc/Stepping/Passes.h"
#include "gptc/Stepping/Remarks.h"

using namespace mlir;

namespace gptc {
#define GEN_PASS_DEF_REMOVEDROPOUT
#include "gptc/Stepping/Passes.h.inc"

namespace {
struct RemoveDropout : impl::RemoveDropoutBase<RemoveDropout> {
  void runOnOperation() override {
    getOperation()->walk([&](gpt::DropoutOp op) {
      remarkPassed(op, "fusion", "remove-dropout", "identity at inference");
      op.getResult().replaceAllUsesWith(op.getX());
      op.erase();
      ++numRemoved;
    });
  }
};
} // namespace
} // namespace gptc
