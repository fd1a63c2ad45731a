//===- Package.h - inside the Package room ----------------------*- C++ -*-===//
//
// The parts that WritePackage.cpp puts together. Errors are lower case
// messages; nothing is left behind by a part that fails, because the whole
// output folder is written aside (OutputFolder.h).
//
//===----------------------------------------------------------------------===//
#pragma once
#include "gptc/Checkpoint/Checkpoint.h"
#include "gptc/Package/PackageModel.h"
#include "llvm/Support/Error.h"

namespace llvm {
class Module;
} // namespace llvm

namespace gptc {

/// Adds the hidden program of one level to the module that holds its kernels.
void emitProgramData(const PackageModel &package, llvm::Module &module);
/// Adds the hidden constant `gptc_the_programs` to the module that holds the
/// programs of all levels.
void emitProgramList(llvm::ArrayRef<PackageModel> levels, llvm::Module &module);

/// Renames the kernels, which the package exports, to NAME_* and internalises
/// the rest.
llvm::Error exportKernels(llvm::ArrayRef<PackageModel> levels,
                          llvm::Module &module);

/// The functions of the API, by their names in gptc_api, and "api".
llvm::ArrayRef<llvm::StringRef> apiNames();

/// A static library of one object, the same bytes for the same input.
llvm::Error writeArchive(llvm::StringRef path, llvm::StringRef objectName,
                         llvm::StringRef object);

/// The shared library `soname` in `folder` from an object file there.
llvm::Error linkSharedLibrary(llvm::StringRef folder,
                              llvm::StringRef objectName,
                              llvm::StringRef soname);

/// Packs the weights one by one; memory is that of the largest one. Without
/// weights, `checkpoint` may be null.
llvm::Error writeWeights(llvm::ArrayRef<PackageModel> levels,
                         const checkpoint::Checkpoint *checkpoint,
                         llvm::StringRef path);

} // namespace gptc
