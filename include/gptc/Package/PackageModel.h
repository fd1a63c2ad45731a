//===- PackageModel.h - everything a package says ---------------*- C++ -*-===//
//
// One plan, computed from the outlined and scheduled module, that the program
// tables, the header, the manifest and the weights file are all written from. A
// package for several levels of CPUs has one plan for each; one for a GPU has
// its kernels in a fatbin. It owns no weights and refers to the module, which
// must outlive it.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "gptc/Kernel/Weights.h"
#include "gptc/Kernel/Workspace.h"
#include "gptc/Runtime/gptc.h"
#include "gptc/Schedule/Target.h"
#include "gptc/Target/CUDA/CudaTarget.h"
#include "gptc/Target/CUDA/Nvcc.h"

namespace gptc {

struct PackageOptions {
  std::string name; ///< a C identifier
  int optimization = 2;
  bool dequantize = false; ///< every weight packed as f32
  std::vector<std::string> disabledFusions;
  /// At the end of every kernel's name; tells the kernels of levels apart.
  std::string suffix;
  /// "sm_80": the kernels run on a GPU, and the CPU's target is the host's. "":
  /// they run on the CPU.
  std::string gpu;
  std::string precision = "f32";
};

/// The kernels of a package for a GPU, compiled.
struct GpuCode {
  CudaProgram program;
  NvccResult fatbin;
  int64_t capability = 0; ///< compute capability, 80 for 8.0

  const CudaKernel &find(gpt::KernelOp op) const {
    return *llvm::find_if(
        program.kernels, [&](const CudaKernel &each) { return each.op == op; });
  }
};

/// A weight in the weights file: a whole global or a section of it.
struct PackedWeight {
  WeightView view;
  std::string name;      ///< of the source tensor
  gptc_weight_desc desc; ///< desc.name is null; `name` has it
};

struct PackageKernel {
  gpt::KernelOp op;
  std::string name;
  int64_t scratchBytes = 0;
};

/// What run checks of an entry beside names and shapes: bounds of the values of
/// i32 inputs, in the order of the inputs, and of dynamic dimensions. As sizes
/// in gptc_value_desc; 0: none.
struct IndexBounds {
  llvm::SmallVector<int64_t> values, dims;
};

struct PackageModel {
  mlir::ModuleOp module;
  TargetDesc target;
  PackageOptions options;
  /// In the order of the module. Weight arguments of calls index `weights`.
  std::vector<EntryPlan> entries;
  std::vector<IndexBounds> bounds; // of each entry
  std::vector<PackageKernel> kernels;
  std::vector<PackedWeight> weights;
  gptc_kv_desc kv{};
  /// 0 without a step entry; ids -1 where the module names none.
  int64_t context = 0, vocab = 0, bos = -1, eos = -1;
  /// Of this level's section of the weights file, and of the whole file.
  uint64_t sectionBegin = 0, sectionBytes = 0, weightsFileBytes = 0;
  /// Changes with anything that changes what the section must hold or what the
  /// kernels compute.
  uint64_t hash = 0;
  /// Of the hashes of all levels; binds the weights file.
  uint64_t packageHash = 0;
  /// Set once there is code.
  std::optional<GpuCode> gpu;

  /// Bytes of a KV page over all layers.
  int64_t pageBytes() const { return kv.layers * kv.heads * kv.block_bytes; }
  const PackageKernel *findKernel(gpt::KernelOp op) const;
  /// What the kernels are for: "x86-64-v4", "sm_80".
  llvm::StringRef targetName() const {
    return options.gpu.empty() ? llvm::StringRef(target.name) : options.gpu;
  }
};

/// Plans the package of an outlined module. Fails, with a diagnostic at the op,
/// global or entry: two step entries, a step that returns something else than
/// logits, tables smaller than vocabulary or context, weights whose storage
/// cannot be packed.
mlir::FailureOr<PackageModel> planPackage(mlir::ModuleOp module,
                                          const TargetDesc &target,
                                          const PackageOptions &options);

/// Lays the sections of the levels out in one weights file and binds them to
/// each other. Called once, also for a single level.
void joinLevels(llvm::MutableArrayRef<PackageModel> levels);

/// "_v3": PackageOptions::suffix in a package of several levels.
std::string levelSuffix(const TargetDesc &target);

/// How an entry's tensor is called in the package.
std::string inputName(mlir::func::FuncOp entry, unsigned argument);
std::string outputName(mlir::func::FuncOp entry, unsigned result);

/// The format of a storage in the C ABI.
gptc_dtype dtypeOf(gpt::Storage storage);

} // namespace gptc
