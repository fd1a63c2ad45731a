//===- LinkCore.cpp - the embedded runtime joins the kernels --------------===//
//
// One module results, with the API and the kernels as NAME_* and nothing else
// visible: two packages link into one program. The runtime comes as assembly,
// compiled when the compiler was: only the kernels' code is made here.
//
//===----------------------------------------------------------------------===//
#include "Package.h"
#include "gptc/Package/WritePackage.h"
#include "gptc/Runtime/CoreAssembly.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace gptc;
using llvm::StringRef;

llvm::ArrayRef<StringRef> gptc::apiNames() {
  static constexpr StringRef names[] = {
      "info", "open",    "session", "step",       "run",
      "fork", "observe", "close",   "last_error", "api"};
  return names;
}

llvm::Error gptc::exportKernels(llvm::ArrayRef<PackageModel> levels,
                                llvm::Module &module) {
  const std::string &name = levels.front().options.name;
  llvm::SmallPtrSet<llvm::GlobalValue *, 32> exported;
  for (const PackageModel &level : levels)
    for (const PackageKernel &kernel : level.kernels) {
      if (level.gpu)
        continue;
      llvm::Function *function = module.getFunction(kernel.name);
      if (!function || function->isDeclaration())
        return llvm::createStringError("no code was generated for " +
                                       kernel.name);
      function->setName(name + "_" + kernel.name);
      function->setLinkage(llvm::GlobalValue::ExternalLinkage);
      function->setVisibility(llvm::GlobalValue::DefaultVisibility);
      exported.insert(function);
    }
  for (llvm::GlobalValue &value : module.global_values()) {
    if (value.isDeclaration() || exported.contains(&value) ||
        value.getName().starts_with("llvm."))
      continue;
    value.setVisibility(llvm::GlobalValue::DefaultVisibility);
    value.setLinkage(llvm::GlobalValue::InternalLinkage);
  }
  // Its users are in the runtime, which LLVM does not look into.
  llvm::appendToCompilerUsed(module,
                             {module.getNamedGlobal("gptc_the_programs")});
  module.setModuleIdentifier(name);
  module.setSourceFileName(name);
  return llvm::Error::success();
}

/// Appends `line` with every `from` in it as `to`.
static void appendReplaced(std::string &text, StringRef line, StringRef from,
                           StringRef to) {
  for (size_t at; (at = line.find(from)) != StringRef::npos;) {
    text += line.take_front(at);
    text += to;
    line = line.drop_front(at + from.size());
  }
  text += line;
}

void gptc::addRuntime(llvm::ArrayRef<PackageModel> levels,
                      llvm::Module &module) {
  const bool gpu = !levels.front().options.gpu.empty();
  StringRef core = gpu ? StringRef(gptcCoreOnGpu, gptcCoreOnGpuSize)
                       : StringRef(gptcCoreOnCpu, gptcCoreOnCpuSize);
  const std::string prefix = levels.front().options.name + "_";
  std::string text, renamed;
  text.reserve(core.size() * 5 / 4);
  while (!core.empty()) {
    StringRef line;
    std::tie(line, core) = core.split('\n');
    // Of the whole object; of the API's functions, which the package exports.
    if (line.starts_with("\t.file") || line.starts_with("\t.hidden"))
      continue;
    if (line.starts_with("\t.asci")) {
      text += line;
    } else {
      // Assembler's labels start with .L and a function's number, like those of
      // the kernels.
      renamed.clear();
      appendReplaced(renamed, line, ".L", ".Lcore.");
      appendReplaced(text, renamed, "gptc_core_", prefix);
    }
    text += '\n';
  }
  module.setModuleInlineAsm(text);
}
