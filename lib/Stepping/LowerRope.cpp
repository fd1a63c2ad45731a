//===- LowerRope.cpp - rope to rope_table and rotate ----------------------===//
//
// Matches:  %r = gpt.rope %x, %pos #gpt.rope<base b, pairs p, dim D>
// Produces: %cs = gpt.rope_table %pos #gpt.rope<...> ; %r = gpt.rotate %x, %cs
// p
//
// After Fusion, so that fusions see one op. Equal tables are left to cse.
//
//===----------------------------------------------------------------------===//
#include "gptc/Stepping/Attention.h"
#include "gptc/Stepping/Passes.h"

using namespace mlir;

namespace gptc {
#define GEN_PASS_DEF_LOWERROPE
#include "gptc/Stepping/Passes.h.inc"

namespace {
struct LowerRope : impl::LowerRopeBase<LowerRope> {
  void runOnOperation() override {
    getOperation()->walk([&](gpt::RopeOp op) {
      OpBuilder builder(op);
      int64_t tokens =
          cast<RankedTensorType>(op.getPositions().getType()).getDimSize(0);
      auto type = RankedTensorType::get({tokens, 2, op.getRope().getDim()},
                                        builder.getF32Type());
      Value table = gpt::RopeTableOp::create(builder, placeOf(op), type,
                                             op.getPositions(), op.getRope());
      gpt::RopeAttr rope = op.getRope();
      IntegerAttr rotary;
      if (rope.getRotary() != rope.getDim())
        rotary = builder.getI64IntegerAttr(rope.getRotary());
      Value rotated =
          gpt::RotateOp::create(builder, op.getLoc(), op.getType(), op.getX(),
                                table, rope.getPairs(), rotary);
      op.getResult().replaceAllUsesWith(rotated);
      op.erase();
      ++numLowered;
    });
  }
};
} // namespace
} // namespace gptc
