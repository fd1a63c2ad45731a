//===- Kernels.h - the kernel generators ------------------------*- C++ -*-===//
//
// One function per kind of kernel. Each emits the body of a gptc_kernel_fn at
// the emitter's insertion point, or reports an error on the op.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "Emitter.h"
#include "gptc/Format/Program.h"

namespace gptc::cpu {

mlir::LogicalResult emitGemm(Emitter &e, KernelContext &c, mlir::Operation *op);
mlir::LogicalResult emitAttention(Emitter &e, KernelContext &c,
                                  gpt::FlashAttentionOp op);
/// Norms, tables, layout changes, elementwise: everything that is no GEMM and
/// no fused attention.
mlir::LogicalResult emitSimple(Emitter &e, KernelContext &c,
                               mlir::Operation *op);

/// Bytes of scratch per thread.
int64_t gemmScratch(gpt::KernelOp kernel);
int64_t attentionScratch(gpt::KernelOp kernel, const TargetDesc &t);

/// Where position `pos` of sequence `seq` lies: the block of the KV head 0, and
/// the slot in the page.
struct KVPlace {
  Value block, slot;
};
KVPlace kvPlace(Emitter &e, Value view, gpt::KVCacheType type, Value sequence,
                Value position);
/// The block of page number `index` (position / page) of a sequence, KV head 0.
Value kvBlock(Emitter &e, Value view, gpt::KVCacheType type, Value sequence,
              Value index);

} // namespace gptc::cpu
