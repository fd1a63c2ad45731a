//===- CheckedModel.h - a model beside its compiled package -----*- C++ -*-===//
//
// The graph as it was written; the kernels and calls that the compiler makes
// of it with the package's options; the checkpoint. The package's hash shows
// that these are the kernels it holds.
//
//===----------------------------------------------------------------------===//

#ifndef GPTC_LIB_CHECK_CHECKEDMODEL_H
#define GPTC_LIB_CHECK_CHECKEDMODEL_H

#include "HostWeights.h"
#include "gptc/Checkpoint/Checkpoint.h"
#include "gptc/Package/PackageModel.h"
#include "gptc/Reference/Weights.h"
#include "gptc/Runtime/Host/Package.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/SourceMgr.h"
#include <memory>
#include <optional>
#include <string>

namespace gptc::check {

/// A folder of its own that is removed with everything in it.
class TemporaryFolder {
public:
  TemporaryFolder() = default;
  TemporaryFolder(const TemporaryFolder &) = delete;
  ~TemporaryFolder();
  /// False with a message on stderr.
  bool create();
  std::string path(llvm::StringRef name) const;

private:
  llvm::SmallString<128> folder;
};

/// Prints "gptc-check: error: ..." and returns `status`.
int report(const std::string &message, int status = 1);

/// Compiles the model at -O2 into `output`. Returns an exit status.
int compilePackage(const std::string &model, const std::string &checkpoint,
                   const std::string &output);

class CheckedModel {
public:
  CheckedModel();

  /// Returns an exit status; anything but 0 has been diagnosed. `checkpoint`
  /// may be empty: the one that the model names.
  int load(const std::string &path, const std::string &checkpoint,
           const host::Package &package);

  mlir::ModuleOp graph() { return *graphModule; }
  const PackageModel &plan() const { return *planned; }
  /// Null if there are none.
  reference::WeightSource *weights() { return source; }
  /// What the host must give when it opens the package; usually nothing.
  llvm::MutableArrayRef<host::Array> hostWeights() {
    if (!made)
      return {};
    return made->arrays;
  }

private:
  mlir::OwningOpRef<mlir::ModuleOp> parse(const std::string &path);
  int makeKernels(const std::string &path, const host::Package &package);
  /// What each kernel's launches are, of a package for a GPU.
  int planLaunches();
  int openCheckpoint(const std::string &path, std::string checkpoint);

  mlir::MLIRContext context;
  llvm::SourceMgr sources;
  std::unique_ptr<mlir::SourceMgrDiagnosticHandler> handler;
  mlir::OwningOpRef<mlir::ModuleOp> graphModule, kernelModule;
  std::optional<PackageModel> planned;
  std::optional<checkpoint::Checkpoint> file;
  std::optional<reference::CheckpointWeights> stored;
  std::optional<HostWeights> made;
  reference::WeightSource *source = nullptr; // one of the two, or null
};

} // namespace gptc::check

#endif // GPTC_LIB_CHECK_CHECKEDMODEL_H
