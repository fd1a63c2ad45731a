//===- Registry.h - the dialects that gptc's text may use -------*- C++ -*-===//
#pragma once
#include "mlir/IR/DialectRegistry.h"

namespace gptc {

/// The gpt dialect and those that a stage of the compiler reads or writes: what
/// gptc-opt and gptc-lsp-server parse.
void registerDialects(mlir::DialectRegistry &registry);

} // namespace gptc
