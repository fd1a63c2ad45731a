//===- Parse.cpp - the first phase: from text to a module -----------------===//
//
// Finds the targets and the output folder first, so that what cannot be done is
// told before anything is compiled. Gives every op a place for diagnostics.
//
//===----------------------------------------------------------------------===//
#include "Phases.h"
#include "gptc/Dialect/Gpt/CheckModel.h"
#include "gptc/Dialect/Gpt/ParseGuard.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace gptc;

/// A C identifier from the model's file name.
static std::string nameFromFile(StringRef file) {
  std::string name = file == "-" ? "model" : llvm::sys::path::stem(file).str();
  for (char &c : name)
    if (!llvm::isAlnum(c))
      c = '_';
  if (name.empty() || name == "gptc" || llvm::isDigit(name[0]))
    name = "model_" + name;
  return name;
}

/// Names of functions and types begin with it: gptc_ is the interface's.
static bool isPackageName(StringRef name) {
  return name != "gptc" && !name.empty() && name.size() <= 64 && !llvm::isDigit(name[0]) &&
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

/// Of a checkpoint: what makes a model of it. Empty for other input.
static std::string importFirst(StringRef input) {
  if (!llvm::sys::fs::exists(input))
    return "";
  StringRef made = input;
  bool isFolder = llvm::sys::fs::is_directory(input);
  std::string extension = llvm::sys::path::extension(input).lower();
  if (extension == ".json" && !isFolder) {
    // config.json, an index of shards: the folder is the checkpoint.
    made = llvm::sys::path::parent_path(input);
    made = made.empty() ? "." : made;
  } else if (!isFolder &&
             !llvm::is_contained(
                 {".gguf", ".safetensors", ".pt", ".pth", ".bin"}, extension)) {
    return "";
  }
  return ("'" + input + "': expected a model (.mlir), got a " +
          (isFolder ? "folder" : "file of a checkpoint") +
          "; make a model of it first: gptc-import " + shellQuoted(made) +
          " -o model.mlir")
      .str();
}

bool Compilation::findTargets() {
  std::string error;
  if (options.cuda) {
    auto target = lookupCudaTarget(options.march, error);
    if (!target)
      return fail(error);
    cudaTarget = *target;
    // The host's side runs on any of its CPUs.
    levels.push_back({*lookupTarget("x86-64", error), {}, {}});
    return true;
  }
  auto targets = lookupTargets(options.march, error, *options.precision);
  if (!targets)
    return fail(error);
  for (TargetDesc &target : *targets) {
    if (options.verbose)
      llvm::errs() << "gptc: target " << target.name
                   << " (-march=" << target.march << ")\n";
    levels.push_back({std::move(target), {}, {}});
  }
  return true;
}

bool Compilation::parse() {
  if (explains())
    remarks.collect(context);
  std::string error;
  if (!findTargets())
    return false;
  if (std::string hint = importFirst(options.input); !hint.empty())
    return fail(hint);
  // A folder that cannot be written is told before anything is compiled.
  if (options.emit.empty() && !options.onlyReports() && !options.onlyCommands) {
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
  if (!module || failed(mlir::verify(*module)) || failed(checkModel(*module)) ||
      failed(checkConstants(*module)))
    return false;
  moduleOp = *module;
  auto given = moduleOp->getAttrOfType<StringAttr>("gpt.name");
  name = given ? given.str() : nameFromFile(options.input);
  if (!isPackageName(name)) {
    moduleOp.emitError("expected gpt.name to be a C identifier of at most 64 "
                       "characters other than 'gptc', got '")
        << name << "'";
    return false;
  }
  return emitModule(Emit::Gpt, ".gpt.mlir", moduleOp);
}
