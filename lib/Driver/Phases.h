//===- Phases.h - the compiler's named phases -------------------*- C++ -*-===//
//
// parse, verify (--verify-fusions), stepping, fusion, kernel, schedule, cpu or
// cuda and nvcc, llvm, package: the rooms in the order of the data flow. Each
// takes what the one before left.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "Diagnostics.h"
#include "Remarks.h"
#include "gptc/Checkpoint/Checkpoint.h"
#include "gptc/Driver/Options.h"
#include "gptc/Package/OutputFolder.h"
#include "gptc/Package/PackageModel.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

namespace gptc {

/// Seconds per phase, in order.
using Timings = std::vector<std::pair<std::string, double>>;

/// For a shell; on one line, whatever the word holds.
std::string shellQuoted(llvm::StringRef word);

class Compilation {
public:
  explicit Compilation(const Options &options);

  /// Runs the phases and writes the product. False: diagnosed on stderr, or
  /// `internal` says that a pass failed without saying why.
  bool run();
  bool internal = false;
  std::string reason; ///< why, if the phase knows
  /// --verify-fusions found one out of its bound.
  bool unproven = false;
  /// After a crash: removes what is not finished.
  void abandon() { folder.reset(); }
  Diagnostics diagnostics;
  /// For a reproducer: the text of the model, and the checkpoint that it names.
  std::string source, checkpointPath;
  llvm::StringRef running; // the phase

private:
  using Phase = bool (Compilation::*)();
  /// What one level of CPUs has of its own: from its schedule on.
  struct Level {
    TargetDesc target;
    mlir::OwningOpRef<mlir::ModuleOp> scheduled, generated;
  };
  /// Runs, times and names one phase.
  bool phase(llvm::StringRef name, Phase body);
  /// Writes the modules that a phase has left, for --dump-ir.
  bool dump(llvm::StringRef phaseName);

  bool findTargets();
  bool parse();
  bool verifyFusions();
  bool stepping();
  bool fusion();
  bool kernel();
  bool schedule();
  bool generate();
  bool translate();
  bool writePackage();
  bool scheduleCuda();
  bool generateCuda();
  bool compileCuda();
  bool printCommands();
  bool printOut(llvm::StringRef text);
  std::optional<NvccResult> nvcc(NvccProduct product);

  bool runPasses(mlir::ModuleOp on,
                 llvm::function_ref<void(mlir::OpPassManager &)> add);
  bool fail(const llvm::Twine &message);
  bool fail(llvm::Error error);

  bool openCheckpoint();
  bool wants(Emit emit) const;
  bool emitText(Emit emit, llvm::StringRef extension, llvm::StringRef text);
  /// --save-temps: keeps a file of the name of the package and this extension.
  bool saveTemp(llvm::StringRef extension, llvm::StringRef bytes);
  bool saveFatbin(llvm::StringRef bytes);
  static mlir::OpPrintingFlags printingFlags(bool isCode);
  bool emitModule(Emit emit, llvm::StringRef extension, mlir::ModuleOp module);
  /// ".x86-64-v3" where there are several levels.
  std::string levelInfix(const Level &level) const;
  /// Whether something asks which ops of the model a kernel was made of.
  bool explains() const;
  bool reportRemarks();
  bool emitProducts();
  bool reportTimings();

  const Options &options;
  mlir::MLIRContext context;
  llvm::LLVMContext llvmContext;
  bool parsing = false;
  Timings timings;
  unsigned dumps = 0;

  std::string name;          // of the package
  std::vector<Level> levels; // the highest first; for a GPU, the host's
  CudaTarget cudaTarget;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::ModuleOp moduleOp;           // a view of it
  std::vector<PackageModel> package; // of each level
  Remarks remarks;
  mlir::OwningOpRef<mlir::ModuleOp> unfused; // as Fusion found it
  std::optional<SourceOps> sourceOps;        // of unfused
  std::optional<checkpoint::Checkpoint> checkpointFile;
  std::optional<OutputFolder> folder;
  bool writeWeightsFile = false;
  std::unique_ptr<llvm::Module> llvmModule;
  std::string object;
};

/// Diagnoses what no kernel can be generated for.
mlir::LogicalResult checkFused(mlir::ModuleOp module);

/// Writes a file aside and renames it, making the folder if needed.
llvm::Error writeFileAtomically(llvm::StringRef folder, llvm::StringRef file,
                                llvm::StringRef text);

} // namespace gptc
