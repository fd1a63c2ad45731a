//===- KernelNames.h - what a kernel is called ------------------*- C++ -*-===//
#pragma once
#include "gptc/Dialect/Gpt/Gpt.h"

namespace gptc {
/// A stable name that says what the kernel of `op` computes, its static sizes
/// and the storage of its weights (f32 goes without saying):
/// gemm_k576_n2x1536_gate_silu_q4_1, attention_h9_d64_causal, rms_norm_c576.
/// `storages`: one per operand, f32 for everything but weights.
std::string kernelName(mlir::Operation *op,
                       llvm::ArrayRef<gpt::Storage> storages);
} // namespace gptc
