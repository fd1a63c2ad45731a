//===- Reduce.h - a big model made small ------------------------*- C++ -*-===//

#ifndef GPTC_LIB_VERIFY_REDUCE_H
#define GPTC_LIB_VERIFY_REDUCE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <string>
#include <vector>

namespace gptc::verify {

/// Elements of the weights that `function` loads.
int64_t weightElements(mlir::func::FuncOp function);

/// Leaves out what comes again: a stretch between two values that are all that
/// goes on from there, equal to an earlier one but for its weights. How many
/// were left out, and of how many.
std::pair<int64_t, int64_t> keepDistinctLayers(mlir::func::FuncOp function);

/// `size` output features in place of the module's vocabulary, in its tables,
/// its LM head and what follows it. False if other ops depend on it; then
/// nothing is changed.
bool cutVocabulary(mlir::ModuleOp module, int64_t size);

} // namespace gptc::verify

#endif // GPTC_LIB_VERIFY_REDUCE_H
