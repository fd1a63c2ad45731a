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
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "gptc/Fusion/Passes.h.inc"

struct FusionOptions {
  /// Fusions left out, by the names of fusionNames().
  std::vector<std::string> disabled;
  /// As gpt-fuse-norm's option least-features; 0: its default.
  int64_t leastNormFeatures = 0;
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
