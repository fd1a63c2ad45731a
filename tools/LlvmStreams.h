//===- LlvmStreams.h - what main does last in tools that use LLVM -*- C++ -*-=//
#pragma once
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

namespace gptc {

/// Sends out what was printed. The exit status: `status`, or 1 in place of 0
/// where standard output cannot take it, which is reported. What standard
/// error cannot take is lost, without an error. (LLVM's streams abort when they
/// are destroyed with an error.)
inline int finishStreams(llvm::StringRef tool, int status) {
  llvm::raw_fd_ostream &out = llvm::outs(), &err = llvm::errs();
  out.flush();
  if (out.has_error()) {
    err << tool
        << ": error: standard output: cannot write: " << out.error().message()
        << '\n';
    out.clear_error();
    status = status ? status : 1;
  }
  err.flush();
  err.clear_error();
  return status;
}

} // namespace gptc
