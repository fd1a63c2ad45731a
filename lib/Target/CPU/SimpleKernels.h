//===- SimpleKernels.h - kernels without register tiles ---------*- C++ -*-===//
#pragma once
#include "Kernels.h"

namespace gptc::cpu {

/// Runs body over columns 0 .. n in vectors; the last, partial one comes with a
/// mask of its lanes (else null).
Values forColumns(Emitter &e, Value n, mlir::ValueRange inits,
                  llvm::function_ref<Values(Value column, Value mask,
                                            mlir::ValueRange carried)>
                      body);
void forColumns(Emitter &e, Value n,
                llvm::function_ref<void(Value column, Value mask)> body);
/// f32 vectors under an optional mask.
Value loadVector(Emitter &e, Value p, Value mask);
void storeVector(Emitter &e, Value v, Value p, Value mask);
/// Elements of f32, i32 or i1, all of one word; of i1 0 is false, anything
/// else true. A vector under an optional mask, or one.
Value loadWords(Emitter &e, Type element, Value p, Value mask);
Value loadWord(Emitter &e, Type element, Value p);
void storeWords(Emitter &e, Value v, Value p, Value mask);
/// A constant array of the module; a splat is one word.
Value constantWords(Emitter &e, llvm::StringRef name,
                    mlir::DenseElementsAttr values);
/// i32 at base[index], widened.
Value loadIndex(Emitter &e, Value base, Value index);
/// rows [from, to) of this thread.
void forShare(Emitter &e, KernelContext &c, Value n,
              llvm::function_ref<void(Value)> body);

void emitLayerNorm(Emitter &e, KernelContext &c, gpt::LayerNormOp op);
void emitRmsNorm(Emitter &e, KernelContext &c, gpt::RmsNormOp op);
void emitSoftmax(Emitter &e, KernelContext &c);
void emitLogSoftmax(Emitter &e, KernelContext &c);
void emitArgmax(Emitter &e, KernelContext &c);
void emitMergeArgmax(Emitter &e, KernelContext &c);
void emitCausalMask(Emitter &e, KernelContext &c, gpt::CausalMaskOp op);
void emitAlibi(Emitter &e, KernelContext &c, gpt::AlibiOp op);
void emitMask(Emitter &e, KernelContext &c, gpt::MaskOp op);
void emitBroadcast(Emitter &e, KernelContext &c, gpt::BroadcastOp op);
void emitExpandShape(Emitter &e, KernelContext &c);
void emitMatmul(Emitter &e, KernelContext &c, gpt::MatmulOp op);
void emitRopeTable(Emitter &e, KernelContext &c, gpt::RopeTableOp op);
void emitRotate(Emitter &e, KernelContext &c, gpt::RotateOp op);
void emitEmbedding(Emitter &e, KernelContext &c, gpt::EmbeddingOp op);
void emitSelectRows(Emitter &e, KernelContext &c);
void emitPositions(Emitter &e, KernelContext &c);
void emitSplit(Emitter &e, KernelContext &c, gpt::SplitOp op);
void emitSplitHeads(Emitter &e, KernelContext &c);
void emitMergeHeads(Emitter &e, KernelContext &c);
void emitKVAppend(Emitter &e, KernelContext &c, gpt::KVAppendOp op);
void emitKVRead(Emitter &e, KernelContext &c, gpt::KVReadOp op);
mlir::LogicalResult emitMap(Emitter &e, KernelContext &c, mlir::Operation *op);

} // namespace gptc::cpu
