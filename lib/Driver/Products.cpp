//===- Products.cpp - what the compiler writes ----------------------------===//
//
// The package, or with --emit single files; the checkpoint that the weights
// come from; timings.
//
//===----------------------------------------------------------------------===//
#include "Phases.h"
#include "gptc/Import/WriteFile.h"
#include "gptc/Package/WritePackage.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace gptc;

llvm::Error gptc::writeFileAtomically(StringRef folder, StringRef file,
                                      StringRef text) {
  if (std::error_code code = llvm::sys::fs::create_directories(
          folder, /*IgnoreExisting=*/true, llvm::sys::fs::all_all))
    return llvm::createFileError(folder, code);
  llvm::SmallString<256> path(folder);
  llvm::sys::path::append(path, file);
  return writeFile(path, text);
}

bool Compilation::wants(Emit emit) const {
  return llvm::is_contained(options.emit, emit);
}

/// To stdout, which may be a full disk.
bool Compilation::printOut(StringRef text) {
  llvm::raw_fd_ostream &out = llvm::outs();
  out << text;
  out.flush();
  if (!out.has_error())
    return true;
  std::error_code code = out.error();
  out.clear_error();
  return fail("standard output: cannot write: " + code.message());
}

/// Writes one product: into the folder, or to stdout if there is none.
bool Compilation::emitText(Emit emit, StringRef extension, StringRef text) {
  if (!wants(emit) || options.onlyCommands)
    return true;
  if (options.output.empty())
    return printOut(text);
  if (auto error =
          writeFileAtomically(options.output, name + extension.str(), text))
    return fail(std::move(error));
  return true;
}

bool Compilation::saveTemp(StringRef extension, StringRef bytes) {
  if (options.tempsFolder.empty())
    return true;
  auto error =
      writeFileAtomically(options.tempsFolder, name + extension.str(), bytes);
  return !error || fail(std::move(error));
}

/// Values are called as the model calls them. A kernel's code has one name for
/// all of its values, that of its call, so there they are numbered.
OpPrintingFlags Compilation::printingFlags(bool isCode) {
  OpPrintingFlags flags;
  flags.enableDebugInfo(false);
  if (!isCode)
    flags.printNameLocAsPrefix();
  return flags;
}

bool Compilation::emitModule(Emit emit, StringRef extension, ModuleOp op) {
  if (!wants(emit))
    return true;
  std::string text;
  llvm::raw_string_ostream stream(text);
  op.print(stream, printingFlags(emit == Emit::Mlir));
  stream << '\n';
  return emitText(emit, extension, text);
}

bool Compilation::explains() const {
  return options.explainFusion || !options.remarks.empty() ||
         !options.remarksOutput.empty() || wants(Emit::Dot);
}

bool Compilation::reportRemarks() {
  remarks.sort();
  for (const std::string &category : options.remarks)
    llvm::errs() << remarks.lines(category, *sourceOps);
  if (options.remarksOutput.empty())
    return true;
  StringRef folder = llvm::sys::path::parent_path(options.remarksOutput);
  if (auto error =
          writeFileAtomically(folder.empty() ? "." : folder,
                              llvm::sys::path::filename(options.remarksOutput),
                              remarks.yaml(*sourceOps)))
    return fail(std::move(error));
  return true;
}

/// Opens the checkpoint if the package is to hold weights from it.
bool Compilation::openCheckpoint() {
  if (options.noWeights || !options.emit.empty())
    return true;
  const PackedWeight *fromHost = nullptr, *stored = nullptr;
  for (const PackedWeight &weight : package.front().weights) {
    ml_program::GlobalOp global = weight.view.global;
    auto where = global->getAttrOfType<gpt::StoredAttr>("gpt.stored");
    (where && !where.getFile().empty() ? stored : fromHost) = &weight;
  }
  if (fromHost) {
    if (options.verbose)
      llvm::errs() << "gptc: weights are handed over by the host at open ('"
                   << fromHost->name << "' lies in no file)\n";
    return true;
  }
  writeWeightsFile = true;
  if (!stored)
    return true;

  std::string path = options.checkpoint;
  if (path.empty()) {
    auto named = moduleOp->getAttrOfType<StringAttr>("gpt.checkpoint");
    if (!named) {
      moduleOp.emitError("expected gpt.checkpoint, where the weights lie, or "
                         "--checkpoint PATH, or --no-weights");
      return false;
    }
    llvm::SmallString<256> full(named.getValue());
    if (llvm::sys::path::is_relative(full)) {
      if (options.input == "-") {
        moduleOp.emitError("expected --checkpoint PATH: the checkpoint '")
            << full << "' is relative to a model read from stdin";
        return false;
      }
      llvm::SmallString<256> folder(
          llvm::sys::path::parent_path(options.input));
      llvm::sys::path::append(folder, full);
      full = folder;
    }
    path = checkpointPath = full.str().str();
  }
  auto opened = checkpoint::Checkpoint::open(path);
  if (!opened)
    return fail(opened.error().message);
  checkpointFile.emplace(std::move(*opened));
  return succeeded(checkWeights(package.front(), *checkpointFile));
}

/// The products of --emit that the later phases make.
bool Compilation::emitProducts() {
  if (!emitText(Emit::Obj, ".o", object) ||
      !emitText(Emit::Header, ".h", headerText(package)) ||
      !emitText(Emit::Manifest, ".manifest.json", manifestText(package, false)))
    return false;
  if (!wants(Emit::Lib))
    return true;
  if (auto error = writeLibraries(package.front(), object, options.output))
    return fail(std::move(error));
  return true;
}

bool Compilation::writePackage() {
  if (!options.emit.empty())
    return emitProducts();
  if (auto error = gptc::writePackage(
          package, object, checkpointFile ? &*checkpointFile : nullptr,
          writeWeightsFile, *folder))
    return fail(std::move(error));
  if (auto error = folder->commit())
    return fail(std::move(error));
  return true;
}

bool Compilation::reportTimings() {
  if (!options.timing)
    return true;
  if (options.timingFile.empty()) {
    for (const auto &[phase, seconds] : timings)
      llvm::errs() << fmt::format("gptc: {:<10} {:8.3f} s\n", phase, seconds);
    return true;
  }
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::json::OStream json(stream, 2);
  json.object([&] {
    json.attributeArray("phases", [&] {
      for (const auto &[phase, seconds] : timings)
        json.object([&] {
          json.attribute("name", phase);
          json.attribute("seconds", seconds);
        });
    });
  });
  stream << '\n';
  StringRef folder = llvm::sys::path::parent_path(options.timingFile);
  if (auto error = writeFileAtomically(
          folder.empty() ? "." : folder,
          llvm::sys::path::filename(options.timingFile), text))
    return fail(std::move(error));
  return true;
}
