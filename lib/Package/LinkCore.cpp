//===- LinkCore.cpp - the embedded runtime joins the kernels --------------===//
//
// One module results, with the API and the kernels as NAME_* and nothing else
// visible: two packages link into one program.
//
//===----------------------------------------------------------------------===//
#include "Package.h"
#include "gptc/Runtime/CoreBitcode.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/Module.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace gptc;
using llvm::StringRef;

llvm::ArrayRef<StringRef> gptc::apiNames() {
  static constexpr StringRef names[] = {
      "info", "open",    "session", "step",       "run",
      "fork", "observe", "close",   "last_error", "api"};
  return names;
}

llvm::Error gptc::linkCore(llvm::ArrayRef<PackageModel> levels,
                           llvm::Module &module) {
  const std::string &name = levels.front().options.name;
  StringRef bytes(reinterpret_cast<const char *>(gptcCoreBitcode),
                  gptcCoreBitcodeSize);
  auto core = llvm::parseBitcodeFile(llvm::MemoryBufferRef(bytes, "core"),
                                     module.getContext());
  if (!core)
    return core.takeError();
  // One data layout, that of the kernels' target.
  (*core)->setDataLayout(module.getDataLayout());
  (*core)->setTargetTriple(module.getTargetTriple());
  if (llvm::Linker::linkModules(module, std::move(*core)))
    return llvm::createStringError("the embedded runtime does not link");

  std::string prefix = name + "_";
  llvm::SmallPtrSet<llvm::GlobalValue *, 32> exported;
  auto rename = [&](StringRef from, const std::string &to) -> llvm::Error {
    llvm::Function *function = module.getFunction(from);
    if (!function || function->isDeclaration())
      return llvm::createStringError("no code was generated for " + from.str());
    function->setName(to);
    function->setLinkage(llvm::GlobalValue::ExternalLinkage);
    function->setVisibility(llvm::GlobalValue::DefaultVisibility);
    exported.insert(function);
    return llvm::Error::success();
  };
  for (StringRef api : apiNames())
    if (auto error = rename(("gptc_core_" + api).str(), prefix + api.str()))
      return error;
  for (const PackageModel &level : levels)
    for (const PackageKernel &kernel : level.kernels)
      if (!level.gpu)
        if (auto error = rename(kernel.name, prefix + kernel.name))
          return error;
  for (llvm::GlobalValue &value : module.global_values()) {
    if (value.isDeclaration() || exported.contains(&value) ||
        value.getName().starts_with("llvm."))
      continue;
    value.setVisibility(llvm::GlobalValue::DefaultVisibility);
    value.setLinkage(llvm::GlobalValue::InternalLinkage);
  }
  module.setModuleIdentifier(name);
  module.setSourceFileName(name);
  return llvm::Error::success();
}
