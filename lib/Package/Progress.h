//===- Progress.h - A line that says how far long work is -------*- C++ -*-===//
#ifndef GPTC_LIB_PACKAGE_PROGRESS_H
#define GPTC_LIB_PACKAGE_PROGRESS_H

#include "llvm/ADT/StringRef.h"
#include <chrono>
#include <cstdint>

namespace gptc {

/// While it lives, one line on stderr: "gptc: packing weights: 41 % of 523 MB".
/// It is written over itself, ten times a second at most, and gone at the end.
/// Nothing is written where stderr is no terminal, or below 16 MB, which take
/// less time than a glance.
class Progress {
public:
  /// `total` in bytes.
  Progress(llvm::StringRef what, uint64_t total);
  ~Progress();
  Progress(const Progress &) = delete;
  Progress &operator=(const Progress &) = delete;

  void advance(uint64_t bytes);

private:
  void show();

  llvm::StringRef what;
  uint64_t total, done = 0;
  bool shown;
  size_t width = 0;
  std::chrono::steady_clock::time_point last;
};

} // namespace gptc

#endif // GPTC_LIB_PACKAGE_PROGRESS_H
