//===- Schedule.h - tile sizes of kernels -----------------------*- C++ -*-===//
//
// Pure functions from shapes and the target to tile sizes, and their form as
// the `schedule` attribute of gpt.kernel. Sizes are in elements.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "gptc/Kernel/KernelGemm.h"
#include "gptc/Schedule/Target.h"

namespace gptc {

/// A GEMM: M rows (tokens), K input features, N output features.
struct GemmSchedule {
  int64_t rowTile = 0;  ///< MR: rows of the register tile
  int64_t panel = 0;    ///< NR: output features of a weight panel
  int64_t rowBlock = 0; ///< MC: rows of A copied at a time, a multiple of MR
  int64_t depth = 0;    ///< KC: input features of a slice, a multiple of 32
  int64_t unit = 0;  ///< panels that hold whole heads, so that a rotary partner
                     ///< is in the same tile, or whole blocks of an argmax, so
                     ///< that threads share none
  int64_t group = 0; ///< panels of a tile, a multiple of unit
  /// What rows and weights are rounded to: F32, BF16 or INT8.
  InputPrecision inputs = InputPrecision::F32;
};

/// Attention: a tile of query rows against one block of keys.
struct AttentionSchedule {
  int64_t tokens = 0;   ///< consecutive tokens of a tile; times the query heads
                        ///< of a KV head gives its rows
  int64_t keyBlock = 0; ///< keys of a block: the page of the cache
  int64_t chunk = 0;    ///< keys that have one softmax, whole blocks
  int64_t rowBlock = 0; ///< rows whose scores of a chunk are kept
};

/// Digits, of a byte each, in which a GEMM takes the numbers of a row beside
/// weights of a storage: 1 for int8; 2 or 3, with an exponent for each 32
/// inputs, where sums of products of bytes are fast and the weights are codes of
/// 4 or 8 bits. 0: rows are f32 or bf16.
int64_t rowDigits(gpt::Storage storage, InputPrecision inputs,
                  const TargetDesc &target);

/// rowDigits of a GEMM's weights, and whether some of them are blocks, which have
/// scales of their own.
struct RowDigits {
  int64_t digits = 0;
  bool blocks = false;
};

/// `whole`: columns that a tile must not cut, as wholeColumnsOf says. `lanes`:
/// the most products that an epilogue takes.
GemmSchedule scheduleGemm(int64_t inFeatures, int64_t whole, RowDigits digits,
                          int64_t lanes, const TargetDesc &target);
AttentionSchedule scheduleAttention(gpt::FlashAttentionOp op,
                                    const TargetDesc &target);

/// Columns that belong in one tile of a GEMM: those of a head, or of a block of
/// an argmax; 0 if each stands alone.
int64_t wholeColumnsOf(mlir::Operation *gemm);

/// The kernel's schedule attribute, or none if the kernel needs no schedule.
mlir::DictionaryAttr scheduleOf(gpt::KernelOp kernel, const TargetDesc &target,
                                InputPrecision inputs);

/// Fails, with a diagnostic, unless the kernel's schedule has every size that
/// `wanted` has, and they are positive.
mlir::LogicalResult expectSizes(gpt::KernelOp kernel,
                                mlir::DictionaryAttr wanted);

/// Checks the attribute against the target: all sizes present and positive, the
/// register tile fits, multiples hold.
mlir::LogicalResult verifySchedule(gpt::KernelOp kernel,
                                   const TargetDesc &target);

/// What a kernel with a verified attribute rounds its inputs to.
InputPrecision kernelInputs(gpt::KernelOp kernel);

/// Reads a verified attribute.
GemmSchedule readGemmSchedule(gpt::KernelOp kernel);
AttentionSchedule readAttentionSchedule(gpt::KernelOp kernel);

} // namespace gptc
