//===- WriteFile.cpp - a whole file or the old one ------------------------===//
//
// LLVM's own temporary files replace every '%' of the path they are given,
// those of its folders too, so this makes the file with mkstemp.
//
//===----------------------------------------------------------------------===//
#include "gptc/Import/WriteFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace gptc;
using llvm::StringRef;
namespace fs = llvm::sys::fs;

static llvm::Error fail(StringRef path, std::error_code why) {
  return llvm::createStringError(
      (path + ": cannot write: " + why.message()).str());
}

/// Writes all of it and closes the descriptor.
static std::error_code writeAll(int file, StringRef contents) {
  llvm::raw_fd_ostream out(file, /*shouldClose=*/true);
  out << contents;
  out.close();
  std::error_code code = out.error();
  out.clear_error();
  return code;
}

llvm::Error gptc::writeFile(StringRef path, StringRef contents) {
  fs::file_status status;
  if (!fs::status(path, status)) {
    if (fs::is_directory(status))
      return llvm::createStringError(
          (path + ": expected a file to write, got a folder").str());
    if (!fs::is_regular_file(status)) {
      int file;
      std::error_code code = fs::openFileForWrite(path, file);
      if (!code)
        code = writeAll(file, contents);
      return code ? fail(path, code) : llvm::Error::success();
    }
  }
  std::string temporary = (path + ".XXXXXX").str();
  int file = mkstemp(temporary.data());
  if (file < 0)
    return fail(path, std::error_code(errno, std::generic_category()));
  // What open() would have given; mkstemp lets only the owner read.
  mode_t mask = ::umask(0);
  ::umask(mask);
  ::fchmod(file, 0666 & ~mask);
  std::error_code code = writeAll(file, contents);
  if (!code)
    code = fs::rename(temporary, path);
  if (!code)
    return llvm::Error::success();
  fs::remove(temporary);
  return fail(path, code);
}
