//===- WritePackage.h - object code and tables to files ---------*- C++ -*-===//
//
// The last room: takes the planned package and the module with its kernels and
// writes lib<name>.so, lib<name>.a, <name>.h, manifest.json, <name>.weights and
// tokenizer.bin.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "gptc/Checkpoint/Checkpoint.h"
#include "gptc/Package/OutputFolder.h"
#include "gptc/Package/PackageModel.h"

namespace llvm {
class Module;
} // namespace llvm

namespace gptc {

/// Adds tables and runtime to the kernels' module; after it the module is
/// ready to be optimised and emitted.
llvm::Error completeModule(const PackageModel &package, llvm::Module &module);

std::string headerText(const PackageModel &package);
std::string manifestText(const PackageModel &package, bool weightsWritten);

/// Checks every weight against its tensor, with a diagnostic at the global.
mlir::LogicalResult checkWeights(const PackageModel &package,
                                 const checkpoint::Checkpoint &checkpoint);

/// Writes the files into the folder; the caller commits. `checkpoint` may be
/// null: no tokenizer then, and no weights file if there are weights.
llvm::Error writePackage(const PackageModel &package, llvm::StringRef object,
                         const checkpoint::Checkpoint *checkpoint,
                         bool writeWeightsFile, const OutputFolder &folder);

/// Writes lib<name>.a and lib<name>.so alone.
llvm::Error writeLibraries(const PackageModel &package, llvm::StringRef object,
                           llvm::StringRef folder);

} // namespace gptc
