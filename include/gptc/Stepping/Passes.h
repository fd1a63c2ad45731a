//===- Passes.h - passes of the Stepping room -------------------*- C++ -*-===//
//
// Run at every optimisation level, before Fusion: dropout goes, attention gets
// its one spelling, @forward becomes @step. gpt-lower-rope runs after Fusion,
// on what it left.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "gptc/Dialect/Gpt/Gpt.h"
#include "mlir/Pass/Pass.h"

namespace gptc {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "gptc/Stepping/Passes.h.inc"
} // namespace gptc
