//===- CudaTarget.h - kernels to CUDA C++ -----------------------*- C++ -*-===//
//
// Prints the kernels of a scheduled module as one CUDA C++ file that needs no
// other: the building blocks of Kernels/*.cuh that they use, what is generated
// for each, and extern "C" functions.
//
// Parameters of a function: a pointer for each kernel argument (f32: const
// float *, or as gpt.element says, i32 and i1: const int *, packed weights, panels of 16: const
// unsigned char *, the cache: const gptc_kv_view * in device memory), one for
// each result that is no cache, then void *scratch if the kernel has any, then
// its dynamic sizes as long long, in the order of gpt.dims.
//
// Refuses, at the op: what has no CUDA kernel yet (a norm within a GEMM).
//
//===----------------------------------------------------------------------===//
#pragma once
#include "gptc/Dialect/Gpt/Gpt.h"
#include "gptc/Schedule/CudaTarget.h"

namespace gptc {

/// At least 1: ceil(mul * the product of the kernel's dimensions dims[] >= 0 /
/// div).
struct CudaExtent {
  int64_t mul = 1;
  int dims[3] = {-1, -1, -1};
  int64_t div = 1;
};

struct CudaLaunch {
  std::string function;
  CudaExtent grid[3];
  int threads = 0;         ///< of a block, in x
  int64_t sharedBytes = 0; ///< dynamic
};

/// Launches that run in order.
struct CudaVariant {
  int64_t mostRows = INT64_MAX;
  /// What the inputs of GEMM and attention are rounded to.
  InputPrecision inputs = InputPrecision::F32;
  std::vector<CudaLaunch> launches;
};

/// The first variant runs whose mostRows is at least the kernel's dimension 0;
/// a kernel without dynamic dimensions has one.
struct CudaKernel {
  gpt::KernelOp op;
  std::vector<CudaVariant> variants;
  int64_t scratchBytes = 0; ///< of device memory, 0: no such parameter
};

struct CudaProgram {
  std::string text; ///< of NAME.cu
  std::vector<CudaKernel> kernels;
};

/// `name` is that of the file, for messages and debuggers.
mlir::FailureOr<CudaProgram> generateCudaKernels(mlir::ModuleOp scheduled,
                                                 const CudaTarget &target,
                                                 InputPrecision precision,
                                                 llvm::StringRef name);

} // namespace gptc
