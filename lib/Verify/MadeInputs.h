//===- MadeInputs.h - seeded weights and arguments --------------*- C++ -*-===//
//
// All numbers are f32, so that plain computations begin with what exact ones
// do.
//
//===----------------------------------------------------------------------===//

#ifndef GPTC_LIB_VERIFY_MADEINPUTS_H
#define GPTC_LIB_VERIFY_MADEINPUTS_H

#include "gptc/Reference/Evaluator.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <map>
#include <random>
#include <set>

namespace gptc::verify {

using Args = llvm::SmallVector<reference::TensorRef>;

/// Sizes of a run. A stepping entry continues a sequence that holds `held`
/// positions already, at the position `first`: further ones are forgotten.
struct RunSizes {
  int64_t tokens = 5, held = 5, first = 3, sequence = 2;
  /// A step wants its rows in order, or the last first.
  bool rowsInOrder = false;
};

/// Uniform numbers; `rows` of several magnitudes, so that what is small beside
/// an epsilon is seen, too.
std::vector<double> uniform(std::mt19937_64 &random, int64_t count,
                            double radius, int64_t columns = 0);

/// The weights of a module by its globals' names, whatever checkpoint they lie
/// in: matrices keep the size of activations, scales are around 1.
class MadeWeights : public reference::WeightSource {
public:
  /// Says which vectors are scales of norms; others are around 0, as biases.
  void look(mlir::ModuleOp module);
  mlir::FailureOr<reference::TensorRef>
  load(mlir::ml_program::GlobalOp global) override;

private:
  std::map<std::string, reference::TensorRef> made;
  std::set<std::string> scales;
};

/// Arguments of `function`: of @forward and named entries, or of a step.
/// Dynamic sizes are sizes.tokens. Null for a type that none can be made of.
Args makeArgs(mlir::func::FuncOp function, const RunSizes &sizes);

/// Rows of the smallest table that `ids` chooses from; -1 if it chooses none.
int64_t rowsChosenBy(mlir::Value ids);

} // namespace gptc::verify

#endif // GPTC_LIB_VERIFY_MADEINPUTS_H
