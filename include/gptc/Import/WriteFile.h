//===- WriteFile.h - a whole file or the old one ----------------*- C++ -*-===//
#ifndef GPTC_IMPORT_WRITEFILE_H
#define GPTC_IMPORT_WRITEFILE_H
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

namespace gptc {

/// Writes beside `path` and renames, so that a reader sees the old file or the
/// whole new one. Devices and pipes are written in place. The error names the
/// path; nothing is left behind then.
llvm::Error writeFile(llvm::StringRef path, llvm::StringRef contents);

/// Registers LLVM's handlers of signals, which remove unfinished files. A
/// signal that is ignored, as under nohup, is ignored after too; LLVM's handler
/// would remove the files, and the process go on without them.
void registerFileRemoval();

} // namespace gptc

#endif // GPTC_IMPORT_WRITEFILE_H
