//===- Writer.h - one kernel's text, being written --------------*- C++ -*-===//
//
// Names, parameters and sizes of a kernel, in which the generators write. The
// generators only read the IR.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "gptc/Target/CUDA/CudaTarget.h"
#include "llvm/ADT/StringSet.h"
#include <fmt/format.h>

namespace gptc::cuda {

using Names = llvm::SmallVector<std::string>;

struct KernelWriter {
  KernelWriter(gpt::KernelOp kernel, const CudaTarget &target,
               InputPrecision precision, llvm::StringSet<> &blocks);

  gpt::KernelOp kernel;
  mlir::Operation *op;
  const CudaTarget &target;
  InputPrecision precision;
  std::string name; ///< of the kernel's functions, without suffix
  llvm::SmallVector<llvm::ArrayRef<int64_t>> dims;
  llvm::StringSet<> &blocks; ///< building blocks in use, "gemv"

  unsigned kernelArguments;

  std::string text;
  CudaKernel product;

  /// Appends a formatted piece of text.
  template <typename... Args>
  void print(fmt::format_string<Args...> format, Args &&...args) {
    fmt::format_to(std::back_inserter(text), format,
                   std::forward<Args>(args)...);
  }

  unsigned arguments() const { return kernelArguments; }
  /// Values are numbered: arguments, then results.
  unsigned result(unsigned i) const { return arguments() + i; }
  unsigned rank(unsigned value) const { return dims[value].size(); }
  llvm::ArrayRef<int64_t> shape(unsigned value) const { return dims[value]; }
  /// Size `axis` of a value: "576" or "d0".
  std::string size(unsigned value, unsigned axis) const;
  /// The product of all sizes but the last `keep`, of type long long.
  std::string count(unsigned value, unsigned keep = 0) const;
  /// The same as an extent, in units of `div`.
  CudaExtent extent(unsigned value, unsigned keep = 0, int64_t div = 1) const;
  /// Product of the static sizes if all are, else -1.
  int64_t staticCount(unsigned value, unsigned keep) const;
  std::optional<gpt::Storage> storage(unsigned argument);

  /// Names of the parameters, arguments then results.
  Names values;
  /// Sets them: the names given, then argN and outN.
  void nameValues(llvm::ArrayRef<llvm::StringRef> names);
  bool usesScratch = false;
  size_t functionAt = 0; ///< where the last function begins

  /// Begins a function of `threads` threads; returns its name. `blocks` are to
  /// be resident at once; 0 leaves that to ptxas, which spills a few registers
  /// of large kernels to fit one more.
  std::string begin(llvm::StringRef suffix, int threads, int blocks = 0);
  /// Ends it, and says above it how it is launched.
  void end();
  /// Adds a launch to the last variant.
  CudaLaunch &launch(const std::string &function, int threads,
                     int64_t sharedBytes = 0);
  CudaVariant &variant(int64_t mostRows = INT64_MAX);
  /// Declares `shared`, dynamic shared memory of floats.
  void declareShared();

  /// A kernel whose threads each do one element of `value` counted without the
  /// last `keep` dimensions; ends inside the condition, after the element's
  /// number `e`.
  void beginElements(unsigned value);
  /// A kernel with one block for each row of `value`.
  void beginRows(unsigned value, int threads, unsigned keep = 1);

  /// A grid has a block even where there is no row (logits that nobody wants).
  void guardRows(unsigned value, unsigned keep);

  /// Fails with what has no kernel.
  llvm::LogicalResult unsupported(const llvm::Twine &what);
};

/// C++ of a number: exact, "0.125f".
std::string number(float v);
std::string number(double v);
/// "type name[] = {...};" in device memory, for a kernel's constant array.
template <typename T>
void printArray(KernelWriter &w, llvm::StringRef name,
                llvm::ArrayRef<T> values);

/// The expression of a scalar arith, math or gpt op. Empty, after a diagnostic,
/// if there is none.
std::string expressionOf(mlir::Operation *op, llvm::ArrayRef<std::string> in);
/// "float", "int" or "bool".
llvm::StringRef scalarType(mlir::Type type);
/// The name that the model gives a value, as a C++ identifier that `used` does
/// not have yet, or v0, v1, ...
std::string valueName(mlir::Value value, llvm::StringSet<> &used);
/// Names in the source of what a kernel computes: "q.0, k.0, v.0".
std::string sourceNames(mlir::Operation *op);
/// "float", "gptc::Bf16", "gptc::F16", "int" of i32 and i1.
std::string elementName(mlir::Type element);
/// What tensor cores multiply, "gptc::Tf32" too.
std::string elementName(InputPrecision precision);
/// "gptc::Cache<gptc::Bf16, 30, 3, 64, 64>".
std::string cacheName(gpt::KVCacheType cache);
/// "q4_1": of gptc::Format.
std::string formatName(gpt::Storage storage);

/// A value whose dimensions are the last ones of another's scores or results,
/// each equal or a static 1: a mask. An argument of the kernel or a constant
/// in it, which is printed as an array first.
struct Repeated {
  Repeated(KernelWriter &w, mlir::Value operand);
  std::string base;
  bool words; ///< i32 or i1
  Names sizes;
  llvm::SmallVector<bool> ones;
  /// Statements that set `offset` from the number `row` of a row of a value of
  /// these sizes.
  std::string rowOffset(llvm::ArrayRef<std::string> shape,
                        llvm::StringRef indent) const;
  /// The element at `offset` and `column`.
  std::string at(llvm::StringRef offset, llvm::StringRef column) const;
};

llvm::LogicalResult writeGemm(KernelWriter &w);
llvm::LogicalResult writeAttention(KernelWriter &w, gpt::FlashAttentionOp op);
/// Norms, tables, argmax: a block a row.
llvm::LogicalResult writeRows(KernelWriter &w);
/// The unfused path and elementwise ops: a thread an element.
llvm::LogicalResult writeElements(KernelWriter &w);

} // namespace gptc::cuda
