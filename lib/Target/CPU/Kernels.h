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

/// A layer_norm or rms_norm of rows of `size` f32.
struct NormRow {
  gpt::NormKind kind;
  int64_t size;
  double eps;
  Value gamma, beta; ///< [size]; beta null: 0
};
/// Row `row` normalised, at `to`. Its bits depend on the row alone.
void emitNormRow(Emitter &e, const NormRow &norm, Value row, Value to);

/// Bytes of scratch per thread.
int64_t gemmScratch(gpt::KernelOp kernel, const TargetDesc &t);
int64_t attentionScratch(gpt::KernelOp kernel, const TargetDesc &t);
/// Bytes of what attention over the KV cache keeps of a chunk, for all heads.
int64_t attentionPartBytes(gpt::KernelOp kernel, const TargetDesc &t);

/// A tensor whose dimensions are the last ones of another's, each equal or a
/// static 1: a mask of scores. An argument of the kernel or a constant in it.
struct Repeated {
  Repeated(Emitter &e, KernelContext &c, Value operand);
  /// Offset, in elements, of its row for row r of the other's rows; `shape` are
  /// the other's sizes.
  Value row(Emitter &e, Value r, llvm::ArrayRef<Value> shape) const;
  /// A vector of it at a row's offset and a column of the other, the last one
  /// under a mask of its lanes.
  Value load(Emitter &e, Type element, Value row, Value column,
             Value lanes) const;

  Value base;
  Values sizes;
  llvm::SmallVector<bool> ones;
};

/// A vector of scores under a vector of a mask.
Value emitMasked(Emitter &e, Value s, Value mask, std::optional<double> fill);
/// s + slope * (distance + lane); distance, of the first lane's key from the
/// query, is below 2^24.
Value emitAlibiBias(Emitter &e, Value s, Value slope, Value distance);
/// Lanes of keys that a query sees when it sees the keys before `visible`, both
/// counted from the first lane, and `window` of them.
Value visibleLanes(Emitter &e, Value visible, std::optional<int64_t> window);
/// The slopes of alibi as a constant f32 array of the module.
Value constantSlopes(Emitter &e, KernelContext &c,
                     llvm::ArrayRef<double> slopes);
/// None if it reaches farther than any sequence: positions have 32 bits.
std::optional<int64_t> windowOf(const std::optional<uint64_t> &window);
std::optional<double> asDouble(const std::optional<llvm::APFloat> &x);

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
