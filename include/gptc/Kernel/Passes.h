//===- Passes.h - passes of the Kernel room ---------------------*- C++ -*-===//
//
// gpt-outline-kernels turns entries into straight lines of kernel calls;
// gpt-verify-outlined stands at the room's exit.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "gptc/Dialect/Gpt/Gpt.h"
#include "mlir/Pass/Pass.h"

namespace gptc {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "gptc/Kernel/Passes.h.inc"
} // namespace gptc
