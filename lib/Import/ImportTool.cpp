//===- ImportTool.cpp - The command line of gptc-import -------------------===//

#include "gptc/Import/ImportTool.h"
#include "TensorUses.h"
#include "gptc/Dialect/Gpt/NearestName.h"
#include "gptc/Import/Import.h"
#include "gptc/Import/WriteFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace gptc;
using llvm::StringRef;
namespace sys = llvm::sys;

namespace {
struct CommandLine {
  std::string checkpoint, output, name;
  bool dryRun = false, verbose = false;
  bool toStdout() const { return output.empty() || output == "-"; }
};

enum Status { Done = 0, BadInput = 1, BadCommandLine = 2 };
} // namespace

static constexpr StringRef optionNames[] = {
    "-o", "--name", "--dry-run", "-v", "--verbose", "--help", "--version"};

static void printHelp() {
  llvm::outs() << R"(gptc-import - write a checkpoint down as a gpt graph

usage: gptc-import CHECKPOINT [-o model.mlir] [--name NAME] [--dry-run] [-v]

  CHECKPOINT   folder with config.json and *.safetensors, pytorch_model*.bin or
               model.pt, a .safetensors file beside its config.json, a .gguf
               file, what torch.save writes (nanoGPT's ckpt.pt; a state dict
               beside a config.json), or an llm.c .bin file
  -o FILE      where to write the module; '-' or no -o: standard output
  --name NAME  C identifier for the compiled package; default: from CHECKPOINT
  --dry-run    check everything and write nothing but a summary and a table of
               the tensors: which are imported, ignored, unused or missing
  -v           also list stored tensors that the model does not use
  --help, --version

architectures: )"
               << supportedArchitectures() << "\n";
}

static Status fail(Status status, const llvm::Twine &message) {
  llvm::errs() << "gptc-import: error: " << message << '\n';
  return status;
}

static Status unknownOption(StringRef option) {
  std::string text = ("unknown option '" + option + "'").str();
  StringRef nearest = nearestName(option, optionNames);
  if (!nearest.empty() && option.size() > 2)
    text += ("; did you mean '" + nearest + "'?").str();
  return fail(BadCommandLine, text + " (--help lists all)");
}

/// Fills `result`. A status other than Done has been reported; nothing: --help
/// or --version was printed.
static std::optional<Status> parseCommandLine(int argc, const char *const *argv,
                                              CommandLine &result) {
  bool onlyOperands = false;
  for (int i = 1; i < argc; ++i) {
    StringRef argument = argv[i];
    if (onlyOperands || argument == "-" || !argument.starts_with("-")) {
      if (!result.checkpoint.empty())
        return fail(BadCommandLine, "expected one checkpoint, got '" +
                                        result.checkpoint + "' and '" +
                                        argument + "'");
      if (argument.empty())
        return fail(BadCommandLine, "expected a checkpoint, got an empty path");
      result.checkpoint = argument.str();
      continue;
    }
    auto [option, value] = argument.split('=');
    bool hasValue = argument.contains('=');
    if (option == "-o" || option == "--name") {
      if (!hasValue && ++i == argc)
        return fail(BadCommandLine, "expected a value after '" + option + "'");
      (option == "-o" ? result.output : result.name) =
          hasValue ? value.str() : argv[i];
      continue;
    }
    if (llvm::is_contained(optionNames, option) && hasValue)
      return fail(BadCommandLine, "option '" + option + "' takes no value");
    if (argument == "--")
      onlyOperands = true;
    else if (argument == "--dry-run")
      result.dryRun = true;
    else if (argument == "-v" || argument == "--verbose")
      result.verbose = true;
    else if (argument == "--help" || argument == "-h")
      return printHelp(), std::nullopt;
    else if (argument == "--version")
      return llvm::outs() << "gptc-import " GPTC_VERSION "\n", std::nullopt;
    else
      return unknownOption(option);
  }
  if (result.checkpoint.empty())
    return fail(BadCommandLine, "expected a checkpoint (--help says more)");
  if (!result.name.empty() && !isModelName(result.name))
    return fail(
        BadCommandLine,
        "--name: expected a C identifier (letters, digits, '_') of at most " +
            llvm::Twine(mostNameBytes) + " characters other than 'gptc', got " +
            (result.name.size() > mostNameBytes
                 ? std::to_string(result.name.size())
                 : "'" + result.name + "'"));
  return Done;
}

static Status writeModel(mlir::ModuleOp module, StringRef path) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  printModel(module, stream);
  if (llvm::Error error = writeFile(path, text))
    return fail(BadInput, llvm::toString(std::move(error)));
  return Done;
}

static void printSummary(const Imported &imported, llvm::raw_ostream &os) {
  mlir::ModuleOp module = *imported.module;
  auto integer = [&](StringRef key) {
    return module->getAttrOfType<mlir::IntegerAttr>(key).getInt();
  };
  auto tokenizer = module->getAttrOfType<mlir::StringAttr>("gpt.tokenizer");
  os << "architecture: " << imported.architecture << '\n'
     << "name: "
     << module->getAttrOfType<mlir::StringAttr>("gpt.name").getValue() << '\n'
     << "layers: " << imported.layers << '\n'
     << "context: " << integer("gpt.context") << '\n'
     << "vocabulary: " << integer("gpt.vocab") << '\n'
     << "parameters: " << imported.parameters << '\n'
     << "stored bytes: " << imported.storedBytes << '\n'
     << "tokenizer: " << (tokenizer ? tokenizer.getValue() : "none") << '\n'
     << "unused tensors: " << imported.unused.size() << '\n';
}

int gptc::importTool(int argc, const char *const *argv) {
  CommandLine line;
  auto parsed = parseCommandLine(argc, argv, line);
  if (!parsed)
    return Done;
  if (*parsed != Done)
    return *parsed;

  ImportOptions options;
  options.name = line.name;
  if (!line.toStdout() && !line.dryRun) {
    StringRef folder = sys::path::parent_path(line.output);
    options.outputFolder = folder.empty() ? "." : folder.str();
    if (!sys::fs::is_directory(options.outputFolder))
      return fail(BadInput, line.output + ": no folder '" +
                                options.outputFolder +
                                "' to write to; create it first");
  }
  auto checkpoint = checkpoint::Checkpoint::open(line.checkpoint);
  if (!checkpoint)
    return fail(BadInput, checkpoint.error().message);
  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  std::vector<TensorUse> tensors;
  options.tensors = &tensors;
  auto imported = importCheckpoint(context, *checkpoint, options);
  if (!imported) {
    if (line.dryRun && !tensors.empty())
      importer::printTensors(tensors, llvm::outs());
    llvm::outs().flush();
    return fail(BadInput, imported.error().message);
  }

  for (const std::string &note : imported->notes)
    llvm::errs() << "gptc-import: note: " << note << '\n';
  if (line.verbose)
    for (const std::string &name : imported->unused)
      llvm::errs() << "gptc-import: note: unused tensor "
                   << checkpoint::quote(name) << '\n';
  else if (!line.dryRun && !imported->unused.empty())
    llvm::errs() << "gptc-import: note: the model does not use "
                 << imported->unused.size()
                 << " of the stored tensors; -v lists them\n";
  if (line.dryRun) {
    printSummary(*imported, llvm::outs());
    llvm::outs() << '\n';
    importer::printTensors(tensors, llvm::outs());
    return Done;
  }
  if (!line.toStdout())
    return writeModel(*imported->module, line.output);
  printModel(*imported->module, llvm::outs());
  return Done;
}
