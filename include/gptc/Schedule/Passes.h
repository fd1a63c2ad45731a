//===- Passes.h - passes of the Schedule room -------------------*- C++ -*-===//
#pragma once
#include "gptc/Dialect/Gpt/Gpt.h"
#include "mlir/Pass/Pass.h"

namespace gptc {
#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "gptc/Schedule/Passes.h.inc"
} // namespace gptc
