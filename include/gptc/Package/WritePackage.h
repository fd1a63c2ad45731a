//===- WritePackage.h - object code and tables to files ---------*- C++ -*-===//
//
// The last room: takes the planned package, a plan a level with the highest
// level first, and the modules with its kernels and
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

/// Joins the modules that hold each level's kernels, all of one LLVMContext,
/// and adds tables; the result is ready to be optimised and emitted for the
/// lowest level: functions carry the CPU that they are for.
llvm::Expected<std::unique_ptr<llvm::Module>>
completeModule(llvm::ArrayRef<PackageModel> levels,
               llvm::MutableArrayRef<std::unique_ptr<llvm::Module>> modules);

/// Adds the runtime, as assembly: to be called once the module is optimised.
void addRuntime(llvm::ArrayRef<PackageModel> levels, llvm::Module &module);

std::string headerText(llvm::ArrayRef<PackageModel> levels);
std::string manifestText(llvm::ArrayRef<PackageModel> levels,
                         bool weightsWritten);

/// Checks every weight against its tensor, with a diagnostic at the global.
mlir::LogicalResult checkWeights(const PackageModel &package,
                                 const checkpoint::Checkpoint &checkpoint);

/// Writes the files into the folder; the caller commits. `checkpoint` may be
/// null: no tokenizer then, and no weights file if there are weights.
llvm::Error writePackage(llvm::ArrayRef<PackageModel> levels,
                         llvm::StringRef object,
                         const checkpoint::Checkpoint *checkpoint,
                         bool writeWeightsFile, const OutputFolder &folder);

/// Writes lib<name>.a and lib<name>.so alone.
llvm::Error writeLibraries(const PackageModel &package, llvm::StringRef object,
                           llvm::StringRef folder);

} // namespace gptc
