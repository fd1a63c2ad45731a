//===- CheckModel.h - what passes rely on -----------------------*- C++ -*-===//
#pragma once
#include "mlir/IR/BuiltinOps.h"

namespace gptc {

/// Fails, with a diagnostic, unless the module holds functions and weights
/// only, each function one block, and no op a region but the epilogues of
/// gpt.fused_gemm. Where MLIR's verifier lets a value be used before it is
/// defined (the top level, blocks that are never reached), an op may use its
/// own result, which passes that follow operands would do for ever. Call it
/// after the verifier.
llvm::LogicalResult checkModel(mlir::ModuleOp module);

} // namespace gptc
