//===- Nvcc.h - CUDA C++ text to PTX and fatbins ----------------*- C++ -*-===//
//
// nvcc is looked for when it is used, never at build time: where CUDA_HOME or
// CUDA_PATH says if one is set, else in PATH and /usr/local/cuda/bin.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "gptc/Schedule/CudaTarget.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"

namespace gptc {

/// What ptxas says of a kernel function.
struct CudaUsage {
  std::string function;
  int64_t registers = 0;                   ///< of a thread
  int64_t stackBytes = 0;                  ///< of a thread
  int64_t spillStores = 0, spillLoads = 0; ///< bytes
  int64_t sharedBytes = 0;                 ///< static, of a block
};

enum class NvccProduct { Ptx, Fatbin };

struct NvccResult {
  std::string bytes;
  std::vector<CudaUsage> usage; ///< of a fatbin, in nvcc's order
  std::string failure;          ///< what nvcc said if it refused the text
};

/// The path of nvcc; an error says where it was looked for and what to
/// install.
llvm::Expected<std::string> findNvcc();

/// The arguments after the program's name, to make `output` from `input`.
std::vector<std::string> nvccArguments(NvccProduct product,
                                       const CudaTarget &target,
                                       llvm::StringRef input,
                                       llvm::StringRef output);

/// Runs nvcc on the text of `name`.cu in a folder of the caller's, where all
/// files lie that it makes. The bytes do not depend on the folder: debug
/// information says /name.cu. An error is one of nvcc, not of the text: it
/// cannot be run, fails for a reason of its own, or writes nothing.
llvm::Expected<NvccResult> runNvcc(llvm::StringRef nvcc, NvccProduct product,
                                   const CudaTarget &target,
                                   llvm::StringRef folder, llvm::StringRef name,
                                   llvm::StringRef text);

/// An error unless the product has PTX of all these kernel functions.
llvm::Error checkProduct(NvccProduct product, llvm::StringRef bytes,
                         llvm::ArrayRef<std::string> functions);

/// What nvcc put into a fatbin that is not compressed.
struct FatbinPart {
  bool isPtx;  ///< text; else machine code, an ELF file
  unsigned sm; ///< 80: the architecture that it is for
  std::string bytes;
};
/// The parts in order. An error says what is no fatbin, or is compressed.
llvm::Expected<std::vector<FatbinPart>> fatbinParts(llvm::StringRef fatbin);

/// Reads the lines of ptxas -v.
std::vector<CudaUsage> parseUsage(llvm::StringRef log);

} // namespace gptc
