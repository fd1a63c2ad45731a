//===- CudaPhases.cpp - the phases of --target=cuda -----------------------===//
//
// After kernels are outlined: schedule, text, nvcc. The phases of LLVM are left
// the host's side: tables and the runtime.
//
//===----------------------------------------------------------------------===//
#include "Phases.h"
#include "gptc/Package/OutputFolder.h"
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

static std::vector<std::string> functionsOf(const CudaProgram &program) {
  std::vector<std::string> names;
  for (const CudaKernel &kernel : program.kernels)
    for (const CudaVariant &variant : kernel.variants)
      for (const CudaLaunch &launch : variant.launches)
        names.push_back(launch.function);
  return names;
}

/// Runs nvcc. Text of ours that it refuses is an internal error.
std::optional<NvccResult> Compilation::nvcc(NvccProduct product) {
  llvm::Expected<std::string> path = findNvcc();
  if (!path) {
    fail(path.takeError());
    return std::nullopt;
  }
  llvm::Expected<OutputFolder> temporary =
      OutputFolder::temporary("gptc-cuda-");
  if (!temporary) {
    fail(temporary.takeError());
    return std::nullopt;
  }
  const CudaProgram &program = package.front().gpu->program;
  auto result = runNvcc(*path, product, cudaTarget, temporary->path(), name,
                        program.text);
  if (!result) {
    fail(result.takeError());
    return std::nullopt;
  }
  if (result->failure.empty()) {
    auto error = checkProduct(product, result->bytes, functionsOf(program));
    if (!error)
      return std::move(*result);
    fail("'" + *path + "': " + llvm::toString(std::move(error)));
    return std::nullopt;
  }
  constexpr size_t mostShown = 2000;
  StringRef said = StringRef(result->failure).rtrim();
  llvm::errs() << said.take_front(mostShown)
               << (said.size() > mostShown ? " ...\n" : "\n");
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
  const bool ptx = wants(Emit::Ptx);
  const bool fatbin = options.emit.empty() || wants(Emit::Fatbin);
  if (!ptx && !fatbin)
    return true; // nothing would be run
  llvm::Expected<std::string> path = findNvcc();
  if (!path)
    return fail(path.takeError());
  auto command = [&](NvccProduct product, StringRef extension) {
    std::string text = shellQuoted(*path);
    for (const std::string &argument : nvccArguments(
             product, cudaTarget, name + ".cu", name + extension.str()))
      text += ' ' + shellQuoted(argument);
    return text + '\n';
  };
  return printOut((ptx ? command(NvccProduct::Ptx, ".ptx") : "") +
                  (fatbin ? command(NvccProduct::Fatbin, ".fatbin") : ""));
}
