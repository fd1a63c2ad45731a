//===- ObjectCode.cpp - LLVM IR to object code, in process ----------------===//
#include "gptc/Target/CPU/CpuTarget.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Triple.h"

using namespace mlir;
using namespace gptc;

static std::unique_ptr<llvm::TargetMachine> machineFor(const TargetDesc &t,
                                                       std::string &error) {
  static const bool once = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
    return true;
  }();
  (void)once;
  llvm::Triple triple(t.triple);
  const llvm::Target *target =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  llvm::TargetOptions options;
  // Products and sums are fused only where the generator says fma: equal bits
  // on every path.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
      triple, t.cpu, t.features, options, llvm::Reloc::PIC_, std::nullopt,
      llvm::CodeGenOptLevel::Default));
}

std::unique_ptr<llvm::Module>
gptc::translateToLLVM(ModuleOp module, const TargetDesc &target,
                      llvm::LLVMContext &context) {
  registerBuiltinDialectTranslation(*module.getContext());
  registerLLVMDialectTranslation(*module.getContext());
  std::unique_ptr<llvm::Module> ir =
      translateModuleToLLVMIR(module, context, "gptc");
  if (!ir)
    return nullptr;
  std::string error;
  auto machine = machineFor(target, error);
  if (!machine) {
    module.emitError() << "no code generator for " << target.triple << ": "
                       << error;
    return nullptr;
  }
  ir->setTargetTriple(llvm::Triple(target.triple));
  ir->setDataLayout(machine->createDataLayout());
  for (llvm::Function &f : *ir)
    if (!f.isDeclaration()) {
      f.addFnAttr("target-cpu", target.cpu);
      if (!target.tune.empty())
        f.addFnAttr("tune-cpu", target.tune);
      if (!target.features.empty())
        f.addFnAttr("target-features", target.features);
      f.addFnAttr(llvm::Attribute::NoUnwind);
    }
  return ir;
}

// Kernels come as the generator wants them: vectors, no stack, nothing to
// inline. What is left: arguments that are the same in every call, address
// arithmetic, loops that test at the top, and short loops of few instructions.
// LLVM's default -O2 takes two and a half times as long and makes the same
// inner loops.
static constexpr StringLiteral pipeline =
    "ipsccp,deadargelim,globaldce,"
    "function(simplifycfg,early-cse<memssa>,loop-mssa(loop-rotate,licm),"
    "simplifycfg,instcombine<no-verify-fixpoint>,early-cse<memssa>,"
    "loop-unroll<O2>,loop-mssa(licm),simplifycfg,adce)";

void gptc::optimizeModule(llvm::Module &module, const TargetDesc &target) {
  std::string error;
  auto machine = machineFor(target, error);
  llvm::LoopAnalysisManager lam;
  llvm::FunctionAnalysisManager fam;
  llvm::CGSCCAnalysisManager cgam;
  llvm::ModuleAnalysisManager mam;
  llvm::PassBuilder pb(machine.get());
  pb.registerModuleAnalyses(mam);
  pb.registerCGSCCAnalyses(cgam);
  pb.registerFunctionAnalyses(fam);
  pb.registerLoopAnalyses(lam);
  pb.crossRegisterProxies(lam, fam, cgam, mam);
  llvm::ModulePassManager passes;
  llvm::cantFail(pb.parsePassPipeline(passes, pipeline));
  passes.run(module, mam);
}

LogicalResult gptc::emitCode(llvm::Module &module, const TargetDesc &target,
                             bool assembly, SmallVectorImpl<char> &out,
                             std::string &error) {
  auto machine = machineFor(target, error);
  if (!machine)
    return failure();
  llvm::raw_svector_ostream os(out);
  llvm::legacy::PassManager pm;
  auto type = assembly ? llvm::CodeGenFileType::AssemblyFile
                       : llvm::CodeGenFileType::ObjectFile;
  if (machine->addPassesToEmitFile(pm, os, nullptr, type,
                                   /*DisableVerify=*/true)) {
    error = "the target cannot emit " +
            std::string(assembly ? "assembly" : "object code");
    return failure();
  }
  pm.run(module);
  return success();
}
