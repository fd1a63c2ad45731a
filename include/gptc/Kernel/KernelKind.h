//===- KernelKind.h - the families of kernels -------------------*- C++ -*-===//
#pragma once
#include "gptc/Dialect/Gpt/Gpt.h"

namespace gptc {
/// What the manifest counts: "gemm", "attention", "matmul", "norm",
/// "embedding", "rope", "softmax", "mask", "kv_cache", "layout" (rows and heads
/// moved), "elementwise".
llvm::StringRef kernelKind(mlir::Operation *op);
} // namespace gptc
