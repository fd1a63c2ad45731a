//===- Pages.h - what a call appends to the KV cache ------------*- C++ -*-===//
//
// Rows are [T, H * D]: T tokens of the step, H KV heads, D head size.
//
//===----------------------------------------------------------------------===//

#ifndef GPTC_LIB_CHECK_PAGES_H
#define GPTC_LIB_CHECK_PAGES_H

#include "Memory.h"
#include "gptc/Dialect/Gpt/Gpt.h"
#include "gptc/Format/Program.h"
#include "gptc/Reference/Evaluator.h"
#include <array>
#include <optional>

namespace gptc::check {

/// By KVCache::Part; empty for a part that is not appended.
using AppendedRows = std::array<std::vector<double>, 2>;

struct Append {
  bool parts[2] = {false, false}; ///< by KVCache::Part
  int64_t layer = 0;
  unsigned cacheOperand = 0; ///< of the call
  llvm::ArrayRef<int64_t> positions, sequences;

  /// The rows at these positions, in the reference's cache and in the package's
  /// pages (laid out as Format/Program.h says).
  AppendedRows fromCache(const reference::KVCache &cache) const;
  /// Nothing if the memory cannot be read.
  std::optional<AppendedRows> fromPages(const void *view, const Memory &memory,
                                        const gptc_kv_desc &kv) const;
  /// Puts `rows` at these positions of the reference's cache.
  std::optional<std::string> write(const AppendedRows &rows,
                                   reference::KVCache &cache) const;
};

/// What a call of `kernel` appends; nothing if it only reads the cache or has
/// none. Refers to `operands`.
std::optional<Append> appendOf(gpt::CallOp call, gpt::KernelOp kernel,
                               llvm::ArrayRef<reference::TensorRef> operands);

} // namespace gptc::check

#endif // GPTC_LIB_CHECK_PAGES_H
