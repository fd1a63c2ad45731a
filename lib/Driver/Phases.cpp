//===- Phases.cpp - the compiler's named phases ---------------------------===//
#include "Phases.h"
#include "ExplainFusion.h"
#include "gptc/Checkpoint/Checkpoint.h"
#include "gptc/Fusion/Passes.h"
#include "gptc/Kernel/Passes.h"
#include "gptc/Package/WritePackage.h"
#include "gptc/Schedule/Passes.h"
#include "gptc/Stepping/Passes.h"
#include "gptc/Target/CPU/CpuTarget.h"
#include "gptc/Verify/VerifyFusions.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include <chrono>

using namespace mlir;
using namespace gptc;

Compilation::Compilation(const Options &options)
    : options(options),
      context(
          [] {
            DialectRegistry registry;
            registry.insert<gpt::GptDialect, func::FuncDialect,
                            arith::ArithDialect, math::MathDialect,
                            tensor::TensorDialect, ml_program::MLProgramDialect,
                            vector::VectorDialect, scf::SCFDialect,
                            cf::ControlFlowDialect, LLVM::LLVMDialect>();
            return registry;
          }(),
          MLIRContext::Threading::DISABLED) {
  context.loadAllAvailableDialects();
  context.printOpOnDiagnostic(false); // the source line is shown
}

bool Compilation::fail(const Twine &message) {
  diagnostics.error(message);
  return false;
}

bool Compilation::fail(llvm::Error error) {
  return fail(llvm::toString(std::move(error)));
}

bool Compilation::runPasses(ModuleOp on,
                            llvm::function_ref<void(OpPassManager &)> add) {
  PassManager manager(&context);
  add(manager);
  return succeeded(manager.run(on));
}

static void addStepping(OpPassManager &manager, const Options &options) {
  manager.addNestedPass<func::FuncOp>(createRemoveDropout());
  manager.addNestedPass<func::FuncOp>(createCanonicalizeAttention());
  DeriveStepOptions derive;
  derive.element = options.kv;
  manager.addPass(createDeriveStep(derive));
}

static void addFusion(OpPassManager &manager, const Options &options) {
  if (options.optimization == 0)
    return buildUnfusedPipeline(manager);
  FusionOptions fusion;
  fusion.disabled = options.disabledFusions;
  // A norm writes its rows once; within a GEMM a block would normalise them
  // again for each of its column tiles.
  if (options.cuda)
    fusion.leastNormFeatures = INT64_MAX;
  buildFusionPipeline(manager, fusion);
}

bool Compilation::verifyFusions() {
  verify::Verification found =
      verify::verifyFusions(moduleOp, [&](OpPassManager &manager) {
        addStepping(manager, options);
        addFusion(manager, options);
      });
  if (!found.error.empty())
    return fail("--verify-fusions: " + found.error);
  std::string text = verify::reportText(found);
  if (!options.onlyReports())
    llvm::errs() << text;
  else if (!printOut(text))
    return false;
  unproven = !found.ok();
  return !unproven || fail("--verify-fusions: a fusion computes something else "
                           "than the ops it replaced");
}

/// A step entry of the model's own has its cache in its types, which --kv does
/// not change.
static bool expectCacheOf(ModuleOp module, StringRef element) {
  for (auto entry : module.getOps<func::FuncOp>())
    for (Type type : entry.getArgumentTypes())
      if (auto cache = dyn_cast<gpt::KVCacheType>(type)) {
        std::string text;
        llvm::raw_string_ostream(text) << cache.getElement();
        if (text == element)
          continue;
        entry.emitOpError("--kv=") << element << ": expected a cache of "
                                   << element << ", got " << type;
        return false;
      }
  return true;
}

bool Compilation::stepping() {
  return runPasses(
             moduleOp,
             [&](OpPassManager &manager) { addStepping(manager, options); }) &&
         (!options.kvGiven || expectCacheOf(moduleOp, options.kv)) &&
         emitModule(Emit::Step, ".step.mlir", moduleOp);
}

bool Compilation::fusion() {
  if (explains()) {
    SourceOps::number(moduleOp);
    unfused = moduleOp.clone();
    sourceOps.emplace(*unfused);
  }
  return runPasses(
             moduleOp,
             [&](OpPassManager &manager) { addFusion(manager, options); }) &&
         reportRemarks() && emitModule(Emit::Fused, ".fused.mlir", moduleOp);
}

bool Compilation::kernel() {
  if (failed(checkFused(moduleOp)) ||
      !runPasses(moduleOp, [&](OpPassManager &manager) {
        OutlineKernelsOptions outline;
        outline.dequantize = options.dequantize;
        if (!options.cuda)
          outline.precision = stringifyPrecision(*options.precision);
        manager.addPass(createOutlineKernels(outline));
        manager.addPass(createVerifyOutlined());
      }))
    return false;
  if (options.explainFusion) {
    std::string text = explainFusion(moduleOp, *sourceOps, remarks);
    if (!options.onlyReports())
      llvm::errs() << text;
    else if (!printOut(text))
      return false;
  }
  return !wants(Emit::Dot) ||
         emitText(Emit::Dot, ".dot", fusionGraph(moduleOp, *sourceOps));
}

std::string Compilation::levelInfix(const Level &level) const {
  return levels.size() > 1 ? "." + level.target.name : "";
}

bool Compilation::schedule() {
  for (Level &level : levels) {
    // The last one has no one to keep the module for.
    level.scheduled = &level == &levels.back() ? std::move(module)
                                               : OwningOpRef(module->clone());
    moduleOp = *level.scheduled;
    if (!runPasses(moduleOp,
                   [&](OpPassManager &manager) {
                     manager.addPass(createSelectSchedule(
                         {level.target.march,
                          stringifyPrecision(*options.precision).str()}));
                   }) ||
        !emitModule(Emit::Kernels, levelInfix(level) + ".kernels.mlir",
                    moduleOp))
      return false;
  }
  return true;
}

bool Compilation::generate() {
  for (Level &level : levels) {
    PackageOptions wanted;
    wanted.name = name;
    wanted.optimization = options.optimization;
    wanted.dequantize = options.dequantize;
    wanted.precision = stringifyPrecision(*options.precision);
    wanted.disabledFusions = options.disabledFusions;
    if (levels.size() > 1)
      wanted.suffix = levelSuffix(level.target);
    FailureOr<PackageModel> planned =
        planPackage(*level.scheduled, level.target, wanted);
    if (failed(planned))
      return false;
    package.push_back(std::move(*planned));
  }
  joinLevels(package);
  // A wrong checkpoint is told before the time for code is spent.
  if (!openCheckpoint())
    return false;
  for (Level &level : levels) {
    level.generated = generateCpuKernels(*level.scheduled, level.target);
    if (!level.generated ||
        !emitModule(Emit::Mlir, levelInfix(level) + ".cpu.mlir",
                    *level.generated))
      return false;
  }
  return true;
}

bool Compilation::translate() {
  std::vector<std::unique_ptr<llvm::Module>> modules;
  for (Level &level : levels) {
    if (failed(lowerToLLVMDialect(*level.generated)))
      return false;
    modules.push_back(
        translateToLLVM(*level.generated, level.target, llvmContext));
    if (!modules.back())
      return false;
  }
  auto completed = completeModule(package, modules);
  if (!completed)
    return fail(completed.takeError());
  llvmModule = std::move(*completed);
  // Every function says what it is for; the rest is for the lowest.
  const TargetDesc &target = levels.back().target;
  optimizeModule(*llvmModule, target);
  const bool saves = !options.tempsFolder.empty();
  if (wants(Emit::Llvm) || saves) {
    std::string text;
    llvm::raw_string_ostream(text) << *llvmModule;
    if (!emitText(Emit::Llvm, ".ll", text) || !saveTemp(".ll", text))
      return false;
  }
  addRuntime(package, *llvmModule);
  for (bool assembly : {true, false}) {
    if (assembly && !wants(Emit::Asm) && !saves)
      continue;
    llvm::SmallVector<char, 0> bytes;
    std::string error;
    // Emission changes the module; assembly is made from a copy.
    auto copy = assembly ? llvm::CloneModule(*llvmModule) : nullptr;
    if (failed(emitCode(assembly ? *copy : *llvmModule, target, assembly, bytes,
                        error)))
      return fail(error);
    StringRef code(bytes.data(), bytes.size());
    if ((assembly && !emitText(Emit::Asm, ".s", code)) ||
        !saveTemp(assembly ? ".s" : ".o", code))
      return false;
    if (!assembly)
      object.assign(bytes.data(), bytes.size());
  }
  return true;
}

bool Compilation::phase(StringRef phaseName, Phase body) {
  auto begin = std::chrono::steady_clock::now();
  running = phaseName;
  if (options.testCrash == phaseName)
    LLVM_BUILTIN_TRAP;
  if (options.verbose)
    llvm::errs() << "gptc: " << phaseName << '\n';
  bool ok = (this->*body)();
  timings.emplace_back(phaseName, std::chrono::duration<double>(
                                      std::chrono::steady_clock::now() - begin)
                                      .count());
  if (!ok) {
    internal = diagnostics.errors() == 0;
    return false;
  }
  return true;
}

bool Compilation::dump(StringRef phaseName) {
  auto write = [&](const std::string &infix, ModuleOp op, bool generated) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    op.print(stream, printingFlags(generated));
    if (auto error = writeFileAtomically(
            options.dumpFolder,
            fmt::format("{:02}-{}{}.mlir", dumps, phaseName.str(), infix),
            text))
      return fail(std::move(error));
    return true;
  };
  bool ok = true;
  if (options.cuda || !levels.front().scheduled)
    ok = write("", moduleOp, false);
  else
    for (Level &level : levels)
      ok = ok && (level.generated
                      ? write(levelInfix(level), *level.generated, true)
                      : write(levelInfix(level), *level.scheduled, false));
  ++dumps;
  return ok;
}

bool Compilation::run() {
  // --emit needs the phases up to its last product only.
  Emit last = Emit::Manifest;
  if (options.onlyCommands)
    last = Emit::Gpt;
  else if (options.onlyReports())
    last = options.explainFusion ? Emit::Dot : Emit::Gpt;
  else if (!options.emit.empty())
    last = std::max(*llvm::max_element(options.emit),
                    options.explainFusion ? Emit::Dot : Emit::Gpt);
  struct Step {
    StringRef name;
    Phase body;
    bool dumped;
    Emit first; // the first product that needs it
  };
  const Step commonSteps[] = {
      {"parse", &Compilation::parse, true, Emit::Gpt},
      {"verify", &Compilation::verifyFusions, false, Emit::Gpt},
      {"stepping", &Compilation::stepping, true, Emit::Step},
      {"fusion", &Compilation::fusion, true, Emit::Fused},
      {"kernel", &Compilation::kernel, true, Emit::Dot},
  };
  const Step cpuSteps[] = {
      {"schedule", &Compilation::schedule, true, Emit::Kernels},
      {"cpu", &Compilation::generate, true, Emit::Mlir},
      {"llvm", &Compilation::translate, false, Emit::Llvm},
      {"package", &Compilation::writePackage, false, Emit::Obj},
  };
  const Step cudaSteps[] = {
      {"schedule", &Compilation::scheduleCuda, true, Emit::Kernels},
      {"cuda", &Compilation::generateCuda, false, Emit::Cu},
      {"nvcc", &Compilation::compileCuda, false, Emit::Ptx},
      {"llvm", &Compilation::translate, false, Emit::Llvm},
      {"package", &Compilation::writePackage, false, Emit::Obj},
  };
  SmallVector<Step> steps(std::begin(commonSteps), std::end(commonSteps));
  if (options.cuda)
    llvm::append_range(steps, cudaSteps);
  else
    llvm::append_range(steps, cpuSteps);
  bool ok = true;
  for (const Step &step : steps)
    ok = ok &&
         (last < step.first ||
          (step.name == "verify" && !options.verifyFusions) ||
          (phase(step.name, step.body) &&
           (!step.dumped || options.dumpFolder.empty() || dump(step.name))));
  if (ok && options.onlyCommands)
    ok = printCommands();
  return reportTimings() && ok;
}
