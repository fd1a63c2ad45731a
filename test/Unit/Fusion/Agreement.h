//===- Agreement.h - compiled graphs against the one written ----*- C++ -*-===//
//
// Everything is evaluated in double, so the only differences are the order of
// sums and products: agreement is close to double's precision.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "BaseGraph.h"
#include "gptc/Reference/Evaluator.h"
#include <functional>

namespace gptc::fuzz {

/// Largest |got - expected| in units of the largest |expected|.
constexpr double tolerance = 1e-10;

/// Seeded arguments and what the base graph makes of them.
struct Expected {
  /// Of a function of tokens of any number: one run each. Others: one run.
  struct Run {
    std::vector<reference::TensorRef> args;
    reference::Results results;
  };
  std::vector<Run> runs;
  uint64_t seed; // of how a stepping entry gets them
};

/// Empty, or why the base graph cannot be evaluated.
std::string expectedOf(mlir::ModuleOp base, const Recipe &recipe,
                       const Weights &weights, Expected &expected);

/// Empty, or where `module` computes something else: `name` says what it is. A
/// module with @step gets the tokens in a ragged batch, in pieces, with
/// rollbacks; if it reads whole sequences from the cache, one by one.
std::string compareWith(const Expected &expected, mlir::ModuleOp module,
                        const Weights &weights, llvm::StringRef name);

/// Stepping and the fusions of -O2, or what -O0 does.
void addPasses(mlir::OpPassManager &manager, bool fuse);
mlir::LogicalResult compile(mlir::ModuleOp module, bool fuse);

} // namespace gptc::fuzz
