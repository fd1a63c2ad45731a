//===- Passes.h - passes of the Fusion room ---------------------*- C++ -*-===//
//
// graph -> fused graph. Every fusion is decided by the IR alone, never
// duplicates a GEMM and never removes a value that has another user.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "gptc/Dialect/Gpt/Gpt.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/Pass.h"

namespace gptc {
/// Output features of a GEMM from which on a norm is fused into it. Counted on
/// an element, the norm of a row takes 6 K operations at most (layer_norm:
/// three passes of two), one thread's share of the row's products K N /
/// threads. With many rows every thread does all norms, where a kernel would
/// share them; on 16 threads that may be a tenth of the share. (With one row
/// there is nothing to share, and the prologue costs nothing.)
constexpr int64_t leastFeaturesOfNorm = 10 * 6 * 16;

/// Columns of a block of an argmax in a GEMM. One pair is written for each, so
/// that merging is little: 384 pairs for 49152 columns. A block is never shared
/// by threads, so the panels of one are a unit that meets every tile of packed
/// rows; with more columns they would not stay in L2 (128 of 4096 input
/// features are 2 MiB), and 128 are the four panels that AVX-512 takes side by
/// side when rows are few.
constexpr int64_t columnsOfArgmaxBlock = 128;

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "gptc/Fusion/Passes.h.inc"

struct FusionOptions {
  /// Fusions left out, by the names of fusionNames().
  std::vector<std::string> disabled;
  /// As gpt-fuse-norm's option least-features.
  int64_t leastNormFeatures = leastFeaturesOfNorm;
};

/// The names that FusionOptions::disabled may hold, in the order of the
/// pipeline.
llvm::ArrayRef<llvm::StringRef> fusionNames();

/// -O2: every fusion. Expects dropout gone and @step derived.
void buildFusionPipeline(mlir::OpPassManager &pm,
                         const FusionOptions &options = {});

/// -O0: only what the later rooms need, rope tables.
void buildUnfusedPipeline(mlir::OpPassManager &pm);

/// `gpt-fusion-pipeline` and `gpt-unfused-pipeline`, for gptc-opt.
void registerFusionPipelines();

} // namespace gptc
