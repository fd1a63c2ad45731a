//===- CpuTarget.cpp - kernels to the LLVM dialect ------------------------===//
#include "gptc/Target/CPU/CpuTarget.h"
#include "Kernels.h"
#include "gptc/Schedule/Schedule.h"
#include "mlir/Conversion/Passes.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cpu;

static LogicalResult emitBody(Emitter &e, KernelContext &c, Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case<gpt::LinearOp, gpt::FusedGemmOp>(
          [&](auto) { return emitGemm(e, c, op); })
      .Case([&](gpt::FlashAttentionOp a) { return emitAttention(e, c, a); })
      .Default([&](Operation *) { return emitSimple(e, c, op); });
}

static LogicalResult emitKernel(gpt::KernelOp kernel, const TargetDesc &target,
                                ModuleOp out) {
  OpBuilder b = OpBuilder::atBlockEnd(out.getBody());
  Type ptr = LLVM::LLVMPointerType::get(b.getContext()), i64 = b.getI64Type();
  auto fn =
      func::FuncOp::create(b, kernel.getLoc(), kernel.getSymName(),
                           b.getFunctionType({ptr, ptr, ptr, i64, i64}, {}));
  b.setInsertionPointToStart(fn.addEntryBlock());
  func::ReturnOp::create(b, kernel.getLoc());
  b.setInsertionPointToStart(&fn.front());
  Emitter e(b, kernel.getLoc(), target);
  KernelContext c{kernel,
                  fn.getArgument(0),
                  fn.getArgument(1),
                  fn.getArgument(2),
                  fn.getArgument(3),
                  fn.getArgument(4)};
  return emitBody(e, c, kernel.kernelOp());
}

OwningOpRef<ModuleOp> gptc::generateCpuKernels(ModuleOp kernels,
                                               const TargetDesc &target) {
  kernels.getContext()
      ->loadDialect<LLVM::LLVMDialect, scf::SCFDialect, vector::VectorDialect,
                    math::MathDialect, arith::ArithDialect,
                    func::FuncDialect>();
  OwningOpRef<ModuleOp> out = ModuleOp::create(kernels.getLoc());
  for (auto kernel : kernels.getOps<gpt::KernelOp>())
    if (failed(verifySchedule(kernel, target)) ||
        failed(emitKernel(kernel, target, *out)))
      return {};
  if (failed(verify(*out)))
    return {};
  // The generators repeat constants and addresses; the text is to be read.
  PassManager pm(out->getContext());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  pm.addPass(createLoopInvariantCodeMotionPass());
  if (failed(pm.run(*out)))
    return {};
  return out;
}

LogicalResult gptc::lowerToLLVMDialect(ModuleOp module) {
  PassManager pm(module.getContext());
  pm.enableVerifier(false); // the module was verified, the result will be
  pm.addPass(createSCFToControlFlowPass());
  pm.addPass(createConvertVectorToLLVMPass());
  pm.addPass(createConvertMathToLLVMPass());
  pm.addPass(createArithToLLVMConversionPass());
  pm.addPass(createConvertControlFlowToLLVMPass());
  pm.addPass(createConvertFuncToLLVMPass());
  pm.addPass(createReconcileUnrealizedCastsPass());
  return pm.run(module);
}

int64_t gptc::kernelPartialBytes(gpt::KernelOp kernel,
                                 const TargetDesc &target) {
  return isa<gpt::FlashAttentionOp>(kernel.kernelOp())
             ? attentionPartBytes(kernel, target)
             : 0;
}

int64_t gptc::kernelScratchBytes(gpt::KernelOp kernel,
                                 const TargetDesc &target) {
  Operation *op = kernel.kernelOp();
  if (isa<gpt::LinearOp, gpt::FusedGemmOp>(op))
    return gemmScratch(kernel, target);
  return isa<gpt::FlashAttentionOp>(op) ? attentionScratch(kernel, target) : 0;
}
