//===- Diagnostics.h - what a run says about its input ----------*- C++ -*-===//
//
// file:line:col: error: text, the part of the line around the column, notes,
// and for an unknown op the nearest one. A line or an attribute may have
// megabytes: what is shown of each is cut, and all of a run together stays
// below 4 KB.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/SourceMgr.h"

namespace gptc {

class Diagnostics {
public:
  llvm::SourceMgr sources; ///< The model, whose lines are shown.

  /// "gptc: error: message".
  void error(const llvm::Twine &message);
  /// "file:" before a message that begins with its line and column.
  void error(llvm::StringRef file, const llvm::Twine &message);
  void print(mlir::Diagnostic &diagnostic);
  /// "gptc: message", for an internal error.
  void say(const llvm::Twine &message);

  unsigned errors() const { return numErrors; }

private:
  void print(mlir::Location location, mlir::DiagnosticSeverity severity,
             const std::string &message);
  std::string shownLine(llvm::StringRef file, unsigned line, unsigned column);
  void write(llvm::StringRef text);

  unsigned numErrors = 0;
  size_t left = 4096 - 64; // the last words have room
  bool full = false;
};

} // namespace gptc
