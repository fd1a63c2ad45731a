//===- VerifyFusions.h - every fusion against what it replaced --*- C++ -*-===//
//
// --verify-fusions. The passes run one by one on a copy of the model; after
// each, every op that it made is evaluated beside the ops that stood there
// before, on the same seeded operands, in double and in f32. What it computes
// must be a value of the graph before, within the bound of Compare.h. The
// results of every function are compared, too, so that a value that is no one's
// is still answered for by those that depend on it.
//
// It judges what passes make of the graph; what kernels make of an op is
// gptc-check's to judge. Weights are made up. Equal layers of a model too big
// to be evaluated are run once, and its vocabulary is cut.
//
//===----------------------------------------------------------------------===//

#ifndef GPTC_VERIFY_VERIFYFUSIONS_H
#define GPTC_VERIFY_VERIFYFUSIONS_H

#include "gptc/Verify/Compare.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include <string>
#include <vector>

namespace gptc::verify {

/// What one pass made at one place, or at several in the same way.
struct FusionCheck {
  std::string fusion;   ///< the pass without "gpt-"
  std::string function; ///< the entry
  std::string place;    ///< file:line:col of the worst, or its value's name
  std::string made;     ///< "gpt.fused_gemm", "result 'logits'"
  std::string of;       ///< the ops in their order: "linear x3, split_heads"
  int64_t count = 1;
  /// The fused ops in f32 against the unfused in double.
  Difference worst;
  /// Largest error of the unfused ops in f32, and of the fused ops in double.
  double plainError = 0.0, doubleError = 0.0;

  bool ok() const { return worst.ok(); }
};

struct Verification {
  std::vector<FusionCheck> checks;
  /// What was left out or made smaller, and why.
  std::vector<std::string> notes;
  int64_t leftOut = 0; ///< functions
  /// Nothing could be evaluated, or a pass failed.
  std::string error;

  bool ok() const;
};

using AddPasses = llvm::function_ref<void(mlir::OpPassManager &)>;

/// `module` is the model as written and stays as it is; `passes` are stepping
/// and fusion.
Verification verifyFusions(mlir::ModuleOp module, AddPasses passes);

/// A table with a line for each check, the notes, and where failures are.
std::string reportText(const Verification &verification);

} // namespace gptc::verify

#endif // GPTC_VERIFY_VERIFYFUSIONS_H
