//===- Phases.cpp - the compiler's named phases ---------------------------===//
#include "Phases.h"
#include "gptc/Checkpoint/Checkpoint.h"
#include "gptc/Dialect/Gpt/ParseGuard.h"
#include "gptc/Fusion/Passes.h"
#include "gptc/Kernel/Passes.h"
#include "gptc/Package/WritePackage.h"
#include "gptc/Schedule/Passes.h"
#include "gptc/Stepping/Passes.h"
#include "gptc/Target/CPU/CpuTarget.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
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

bool Compilation::runPasses(llvm::function_ref<void(OpPassManager &)> add) {
  PassManager manager(&context);
  add(manager);
  return succeeded(manager.run(*module));
}

/// A C identifier from the model's file name.
static std::string nameFromFile(StringRef file) {
  std::string name = file == "-" ? "model" : llvm::sys::path::stem(file).str();
  for (char &c : name)
    if (!llvm::isAlnum(c))
      c = '_';
  if (name.empty() || llvm::isDigit(name[0]))
    name = "model_" + name;
  return name;
}

static bool isIdentifier(StringRef name) {
  return !name.empty() && name.size() <= 64 && !llvm::isDigit(name[0]) &&
         llvm::all_of(name,
                      [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

/// The name that the text gives to an op's result; empty for a number.
static StringRef writtenName(const AsmParserState::OperationDefinition &op) {
  if (op.resultGroups.empty())
    return "";
  SMRange range = op.resultGroups.front().definition.loc;
  StringRef text(range.Start.getPointer(),
                 range.End.getPointer() - range.Start.getPointer());
  text.consume_front("%");
  return llvm::all_of(text, llvm::isDigit) ? "" : text;
}

/// Parses without verifying. An imported model names its tensors as locations;
/// another one names them in its text, and they become locations here. Every op
/// gets its line and column besides, so that diagnostics have a place.
static OwningOpRef<ModuleOp> parseModel(const llvm::SourceMgr &sources,
                                        MLIRContext &context) {
  Block block;
  AsmParserState state;
  ParserConfig config(&context, /*verifyAfterParse=*/false);
  if (failed(parseAsmSourceFile(sources, &block, config, &state)))
    return nullptr;
  StringRef file =
      sources.getMemoryBuffer(sources.getMainFileID())->getBufferIdentifier();
  for (const AsmParserState::OperationDefinition &definition :
       state.getOpDefs()) {
    Operation *op = definition.op;
    Location place = op->getLoc();
    if (!place->findInstanceOf<FileLineColLoc>()) {
      auto [line, column] = sources.getLineAndColumn(definition.loc.Start);
      Location start = FileLineColLoc::get(&context, file, line, column);
      auto name = dyn_cast<NameLoc>(place);
      op->setLoc(name ? NameLoc::get(name.getName(), start) : start);
    } else if (StringRef name = writtenName(definition); !name.empty()) {
      op->setLoc(NameLoc::get(StringAttr::get(&context, name), place));
    }
  }
  Location start = FileLineColLoc::get(&context, file, 1, 1);
  return mlir::detail::constructContainerOpForParserIfNecessary<ModuleOp>(
      &block, &context, start);
}

/// Values that lie beside the text, in its resources, are not read.
static LogicalResult checkConstants(ModuleOp module) {
  auto result = module->walk([](arith::ConstantOp op) {
    if (isa<TensorType>(op.getType()) && !isa<DenseElementsAttr>(op.getValue()))
      return op.emitOpError("expected a value of the form dense<...>, or a "
                            "weight (ml_program.global), got ")
                 << op.getValue(),
             WalkResult::interrupt();
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

bool Compilation::parse() {
  std::string error;
  if (std::optional<TargetDesc> found = lookupTarget(options.march, error))
    target = *found;
  else
    return fail(error);
  // A folder that cannot be written is told before anything is compiled.
  if (options.emit.empty()) {
    auto made = OutputFolder::create(options.output);
    if (!made)
      return fail(made.takeError());
    folder.emplace(std::move(*made));
  }
  auto buffer = llvm::MemoryBuffer::getFileOrSTDIN(options.input);
  if (!buffer)
    return fail("'" + options.input + "': " + buffer.getError().message());
  source = (*buffer)->getBuffer().str();
  StringRef shown = options.input == "-" ? "<stdin>" : StringRef(options.input);
  if (!bracketDepthOk(source, defaultBracketLimit, error)) {
    diagnostics.error(shown, error);
    return false;
  }
  diagnostics.sources.AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBuffer(source, shown), SMLoc());
  context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    // A parser that has failed says so again on its way out.
    bool error = diagnostic.getSeverity() == DiagnosticSeverity::Error;
    if (!error || !parsing || !diagnostics.errors())
      diagnostics.print(diagnostic);
  });
  parsing = true;
  module = parseModel(diagnostics.sources, context);
  parsing = false;
  if (!module || failed(verify(*module)) || failed(checkConstants(*module)))
    return false;
  moduleOp = *module;
  auto given = moduleOp->getAttrOfType<StringAttr>("gpt.name");
  name = given ? given.str() : nameFromFile(options.input);
  if (!isIdentifier(name)) {
    moduleOp.emitError("expected gpt.name to be a C identifier of at most 64 "
                       "characters, got '")
        << name << "'";
    return false;
  }
  return emitModule(Emit::Gpt, ".gpt.mlir", moduleOp);
}

bool Compilation::stepping() {
  return runPasses([](OpPassManager &manager) {
           manager.addNestedPass<func::FuncOp>(createRemoveDropout());
           manager.addPass(createDeriveStep());
         }) &&
         emitModule(Emit::Step, ".step.mlir", moduleOp);
}

bool Compilation::fusion() {
  return runPasses([&](OpPassManager &manager) {
           if (options.optimization == 0)
             return buildUnfusedPipeline(manager);
           FusionOptions fusion;
           fusion.disabled = options.disabledFusions;
           buildFusionPipeline(manager, fusion);
         }) &&
         emitModule(Emit::Fused, ".fused.mlir", moduleOp);
}

bool Compilation::kernel() {
  return runPasses([&](OpPassManager &manager) {
    OutlineKernelsOptions outline;
    outline.dequantize = options.dequantize;
    manager.addPass(createOutlineKernels(outline));
    manager.addPass(createVerifyOutlined());
  });
}

bool Compilation::schedule() {
  return runPasses([&](OpPassManager &manager) {
           manager.addPass(createSelectSchedule({options.march}));
         }) &&
         emitModule(Emit::Kernels, ".kernels.mlir", moduleOp);
}

bool Compilation::generate() {
  PackageOptions wanted;
  wanted.name = name;
  wanted.optimization = options.optimization;
  wanted.dequantize = options.dequantize;
  FailureOr<PackageModel> planned = planPackage(moduleOp, target, wanted);
  if (failed(planned))
    return false;
  package = std::move(*planned);
  // A wrong checkpoint is told before the time for code is spent.
  if (!openCheckpoint())
    return false;
  generated = generateCpuKernels(moduleOp, target);
  if (!generated)
    return false;
  generatedOp = *generated;
  return emitModule(Emit::Mlir, ".cpu.mlir", generatedOp);
}

bool Compilation::translate() {
  if (failed(lowerToLLVMDialect(*generated)))
    return false;
  llvmModule = translateToLLVM(*generated, target, llvmContext);
  if (!llvmModule)
    return false;
  if (auto error = completeModule(*package, *llvmModule))
    return fail(std::move(error));
  optimizeModule(*llvmModule, target);
  if (wants(Emit::Llvm)) {
    std::string text;
    llvm::raw_string_ostream(text) << *llvmModule;
    if (!emitText(Emit::Llvm, ".ll", text))
      return false;
  }
  for (bool assembly : {true, false}) {
    if (assembly && !wants(Emit::Asm))
      continue;
    llvm::SmallVector<char, 0> bytes;
    std::string error;
    // Emission changes the module; assembly is made from a copy.
    auto copy = assembly ? llvm::CloneModule(*llvmModule) : nullptr;
    if (failed(emitCode(assembly ? *copy : *llvmModule, target, assembly, bytes,
                        error)))
      return fail(error);
    if (assembly &&
        !emitText(Emit::Asm, ".s", StringRef(bytes.data(), bytes.size())))
      return false;
    if (!assembly)
      object.assign(bytes.data(), bytes.size());
  }
  return true;
}

bool Compilation::phase(StringRef phaseName, Phase body, ModuleOp *dumped) {
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
  if (options.dumpFolder.empty() || !dumped || !*dumped)
    return true;
  std::string text;
  llvm::raw_string_ostream stream(text);
  (*dumped)->print(stream, printingFlags(*dumped));
  if (auto error = writeFileAtomically(
          options.dumpFolder,
          fmt::format("{:02}-{}.mlir", dumps++, phaseName.str()), text))
    return fail(std::move(error));
  return true;
}

bool Compilation::run() {
  // --emit needs the phases up to its last product only.
  Emit last = Emit::Manifest;
  if (!options.emit.empty())
    last = *llvm::max_element(options.emit);
  struct Step {
    StringRef name;
    Phase body;
    ModuleOp *dumped;
    Emit first; // the first product that needs it
  };
  const Step steps[] = {
      {"parse", &Compilation::parse, &moduleOp, Emit::Gpt},
      {"stepping", &Compilation::stepping, &moduleOp, Emit::Step},
      {"fusion", &Compilation::fusion, &moduleOp, Emit::Fused},
      {"kernel", &Compilation::kernel, &moduleOp, Emit::Kernels},
      {"schedule", &Compilation::schedule, &moduleOp, Emit::Kernels},
      {"cpu", &Compilation::generate, &generatedOp, Emit::Mlir},
      {"llvm", &Compilation::translate, nullptr, Emit::Llvm},
      {"package", &Compilation::writePackage, nullptr, Emit::Obj},
  };
  bool ok = true;
  for (const Step &step : steps)
    ok = ok && (last < step.first || phase(step.name, step.body, step.dumped));
  return reportTimings() && ok;
}
