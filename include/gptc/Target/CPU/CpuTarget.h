//===- CpuTarget.h - kernels to native code ---------------------*- C++ -*-===//
//
// Lowers gpt.kernel ops to functions with the signature gptc_kernel_fn
// (Format/Program.h): first to vector, scf, arith and LLVM pointers, then to
// LLVM IR, then to object code, all in process.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "gptc/Dialect/Gpt/Gpt.h"
#include "gptc/Schedule/Target.h"
#include "llvm/ADT/SmallVector.h"
#include <memory>

namespace llvm {
class LLVMContext;
class Module;
} // namespace llvm

namespace gptc {

/// Generates into a new module one func.func per gpt.kernel of `kernels`, of
/// the same name, plus shared micro-kernels. A kernel without a lowering is an
/// error at its location. The result is --emit=mlir.
mlir::OwningOpRef<mlir::ModuleOp> generateCpuKernels(mlir::ModuleOp kernels,
                                                     const TargetDesc &target);

/// Lowers the module of generateCpuKernels to the LLVM dialect, in place.
mlir::LogicalResult lowerToLLVMDialect(mlir::ModuleOp module);

/// Translates the LLVM-dialect module to LLVM IR for the target. Null after a
/// diagnostic.
std::unique_ptr<llvm::Module> translateToLLVM(mlir::ModuleOp module,
                                              const TargetDesc &target,
                                              llvm::LLVMContext &context);

/// Runs LLVM's -O2 pipeline for the target (after everything is linked in and
/// internalised).
void optimizeModule(llvm::Module &module, const TargetDesc &target);

/// Emits position-independent object code, or assembly.
mlir::LogicalResult emitCode(llvm::Module &module, const TargetDesc &target,
                             bool assembly, llvm::SmallVectorImpl<char> &out,
                             std::string &error);

/// Bytes of scratch that each thread needs to run the scheduled kernel (0 if
/// none).
int64_t kernelScratchBytes(gpt::KernelOp kernel, const TargetDesc &target);

/// gptc_kv_desc::partial_bytes that the scheduled kernel asks for.
int64_t kernelPartialBytes(gpt::KernelOp kernel, const TargetDesc &target);

} // namespace gptc
