//===- CudaPhases.cpp - the phases of --target=cuda -----------------------===//
//
// After kernels are outlined: schedule, text, nvcc. The phases of LLVM are left
// the host's side: tables and the runtime.
//
//===----------------------------------------------------------------------===//
#include "Phases.h"
#include "gptc/Schedule/Passes.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace gptc;

bool Compilation::scheduleCuda() {
  return runPasses(moduleOp,
                   [&](OpPassManager &manager) {
                     StringRef precision =
                         stringifyPrecision(*options.precision);
                     // The unfused path is there to be compared with.
                     if (is16Bit(*options.precision) && options.optimization)
                       manager.addPass(createNarrowValues({precision.str()}));
                     SelectScheduleOptions select;
                     select.march = cudaTarget.name;
                     select.precision = precision;
                     manager.addPass(createSelectSchedule(select));
                   }) &&
         emitModule(Emit::Kernels, ".kernels.mlir", moduleOp);
}

bool Compilation::generateCuda() {
  FailureOr<CudaProgram> program =
      generateCudaKernels(moduleOp, cudaTarget, *options.precision, name);
  if (failed(program) || !saveTemp(".cu", program->text))
    return false;
  // Text alone may be of a model that is no package.
  if (!options.emit.empty()) {
    package.emplace_back().gpu = {std::move(*program), {}, 0};
    return emitText(Emit::Cu, ".cu", package.front().gpu->program.text);
  }
  PackageOptions wanted;
  wanted.name = name;
  wanted.optimization = options.optimization;
  wanted.dequantize = options.dequantize;
  wanted.disabledFusions = options.disabledFusions;
  wanted.gpu = cudaTarget.name;
  wanted.precision = stringifyPrecision(*options.precision);
  FailureOr<PackageModel> planned =
      planPackage(moduleOp, levels.front().target, wanted);
  if (failed(planned))
    return false;
  planned->gpu = {std::move(*program), {}, cudaTarget.capability};
  package.push_back(std::move(*planned));
  joinLevels(package);
  levels.front().generated = ModuleOp::create(moduleOp.getLoc());
  return openCheckpoint();
}

/// Runs nvcc. Text of ours that it refuses is an internal error.
std::optional<NvccResult> Compilation::nvcc(NvccProduct product) {
  llvm::Expected<std::string> path = findNvcc();
  if (!path) {
    fail(path.takeError());
    return std::nullopt;
  }
  auto result = runNvcc(*path, product, cudaTarget, name,
                        package.front().gpu->program.text);
  if (!result) {
    fail(result.takeError());
    return std::nullopt;
  }
  if (result->failure.empty())
    return std::move(*result);
  llvm::errs() << result->failure;
  reason = "failed: nvcc refused the generated text";
  return std::nullopt;
}

/// What is in the fatbin, rather than what nvcc leaves when it is told to keep
/// files: that changes names within the fatbin.
bool Compilation::saveFatbin(StringRef bytes) {
  if (options.tempsFolder.empty())
    return true;
  auto parts = fatbinParts(bytes);
  if (!parts)
    return fail("--save-temps: " + llvm::toString(parts.takeError()));
  for (const FatbinPart &part : *parts)
    if (!saveTemp(part.isPtx ? ".ptx" : fmt::format(".sm_{}.cubin", part.sm),
                  part.bytes))
      return false;
  return saveTemp(".fatbin", bytes);
}

bool Compilation::compileCuda() {
  if (wants(Emit::Ptx)) {
    auto ptx = nvcc(NvccProduct::Ptx);
    if (!ptx || !saveTemp(".ptx", ptx->bytes) ||
        !emitText(Emit::Ptx, ".ptx", ptx->bytes))
      return false;
    if (!wants(Emit::Fatbin))
      return true;
  }
  auto made = nvcc(NvccProduct::Fatbin);
  if (!made)
    return false;
  NvccResult &fatbin = package.front().gpu->fatbin;
  fatbin = std::move(*made);
  if (!saveFatbin(fatbin.bytes))
    return false;
  if (options.verbose)
    for (const CudaUsage &usage : fatbin.usage)
      llvm::errs() << fmt::format(
          "gptc: {}: {} registers, {} bytes spilled, {} "
          "bytes of static shared memory\n",
          usage.function, usage.registers, usage.spillStores,
          usage.sharedBytes);
  return emitText(Emit::Fatbin, ".fatbin", fatbin.bytes);
}

bool Compilation::printCommands() {
  llvm::Expected<std::string> path = findNvcc();
  if (!path)
    return fail(path.takeError());
  auto print = [&](NvccProduct product, StringRef extension) {
    llvm::outs() << *path;
    for (const std::string &argument : nvccArguments(
             product, cudaTarget, name + ".cu", name + extension.str()))
      llvm::outs() << ' ' << argument;
    llvm::outs() << '\n';
  };
  if (wants(Emit::Ptx))
    print(NvccProduct::Ptx, ".ptx");
  if (options.emit.empty() || wants(Emit::Fatbin))
    print(NvccProduct::Fatbin, ".fatbin");
  return true;
}
