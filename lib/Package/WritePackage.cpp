//===- WritePackage.cpp - object code and tables to files -----------------===//
#include "gptc/Package/WritePackage.h"
#include "Package.h"
#include "gptc/Import/TokenizerSource.h"
#include "gptc/Import/WriteFile.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/IR/Module.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace gptc;
using llvm::StringRef;

llvm::Expected<std::unique_ptr<llvm::Module>> gptc::completeModule(
    llvm::ArrayRef<PackageModel> levels,
    llvm::MutableArrayRef<std::unique_ptr<llvm::Module>> modules) {
  for (auto [level, module] : llvm::zip(levels, modules)) {
    // The helpers of kernels too: what a disassembler shows says its level.
    if (!level.options.suffix.empty())
      for (llvm::Function &function : *module)
        if (!function.isDeclaration())
          function.setName(function.getName() + level.options.suffix);
    emitProgramData(level, *module);
  }
  std::unique_ptr<llvm::Module> whole = std::move(modules.back());
  for (std::unique_ptr<llvm::Module> &module : modules.drop_back())
    if (llvm::Linker::linkModules(*whole, std::move(module)))
      return llvm::createStringError("the levels' kernels do not link");
  emitProgramList(levels, *whole);
  if (auto error = exportKernels(levels, *whole))
    return error;
  return whole;
}

llvm::Error gptc::writeLibraries(const PackageModel &package, StringRef object,
                                 StringRef folder) {
  const std::string &name = package.options.name;
  std::string objectName = name + ".o", shared = "lib" + name + ".so";
  auto in = [&](const std::string &file) {
    llvm::SmallString<256> full(folder);
    llvm::sys::path::append(full, file);
    return full.str().str();
  };
  // lld reads files only.
  std::string linked = name + ".link.o";
  llvm::FileRemover remover(in(linked));
  if (auto error = writeFile(in(linked), object))
    return error;
  if (auto error = writeArchive(in("lib" + name + ".a"), objectName, object))
    return error;
  return linkSharedLibrary(folder, linked, shared);
}

/// A checkpoint without a tokenizer makes a package without one; one whose
/// tokenizer breaks a rule is an error only if the model names it.
static llvm::Error writeTokenizer(const PackageModel &package,
                                  const checkpoint::Checkpoint &checkpoint,
                                  const OutputFolder &folder) {
  if (!package.module->hasAttr("gpt.tokenizer"))
    return llvm::Error::success();
  std::string why;
  auto data = loadTokenizer(checkpoint, why);
  if (!data)
    return llvm::createStringError(data.error().message);
  if (!*data)
    return llvm::createStringError(
        "the module names a tokenizer that the checkpoint does not have: " +
        why);
  std::vector<uint8_t> bytes = text::serialize(**data);
  return folder.write(
      "tokenizer.bin",
      StringRef(reinterpret_cast<const char *>(bytes.data()), bytes.size()));
}

llvm::Error gptc::writePackage(llvm::ArrayRef<PackageModel> levels,
                               StringRef object,
                               const checkpoint::Checkpoint *checkpoint,
                               bool writeWeightsFile,
                               const OutputFolder &folder) {
  const PackageModel &package = levels.front();
  const std::string &name = package.options.name;
  if (auto error = writeLibraries(package, object, folder.file("")))
    return error;
  if (auto error = folder.write(name + ".h", headerText(levels)))
    return error;
  if (package.gpu) {
    if (auto error = folder.write(name + ".cu", package.gpu->program.text))
      return error;
    if (auto error = folder.write(name + ".fatbin", package.gpu->fatbin.bytes))
      return error;
  }
  if (auto error =
          folder.write("manifest.json", manifestText(levels, writeWeightsFile)))
    return error;
  if (checkpoint)
    if (auto error = writeTokenizer(package, *checkpoint, folder))
      return error;
  if (writeWeightsFile)
    return writeWeights(levels, checkpoint, folder.file(name + ".weights"));
  return llvm::Error::success();
}
