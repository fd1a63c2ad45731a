//===- Respell.h - a graph in another spelling ------------------*- C++ -*-===//
//
// Rules that rewrite a graph and keep its meaning: in real arithmetic, and with
// numbers that f32 holds, so that in double nothing but the order of sums and
// products changes. Each takes one place that its Choice picks, or says that
// there is none.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "BaseGraph.h"

namespace gptc::fuzz {

/// One application: the rule, and the seed of its choices.
struct Respelling {
  unsigned rule;
  uint64_t seed;
};

Respelling randomRespelling(Choice &choice);
llvm::StringRef nameOf(const Respelling &respelling);

/// False if the rule finds no place.
bool respell(mlir::func::FuncOp function, Weights &weights,
             const Respelling &respelling);

} // namespace gptc::fuzz
