//===- TensorUses.h - What becomes of each tensor ---------------*- C++ -*-===//
//
// The table of gptc-import --dry-run: every stored tensor, and every one that
// the model needs and the checkpoint does not have.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_IMPORT_TENSORUSES_H
#define GPTC_IMPORT_TENSORUSES_H

#include "Weights.h"
#include "gptc/Import/Import.h"
#include "llvm/Support/raw_ostream.h"

namespace gptc::importer {

/// In the order of the files; what is missing comes last.
std::vector<TensorUse> tensorUses(const checkpoint::Checkpoint &checkpoint,
                                  const Weights &weights);

/// Aligned columns, a line a tensor, and a line of totals for each use.
void printTensors(const std::vector<TensorUse> &uses, llvm::raw_ostream &os);

} // namespace gptc::importer

#endif // GPTC_IMPORT_TENSORUSES_H
