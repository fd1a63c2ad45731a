//===- OutputFolder.cpp - all of a folder or none of it -------------------===//
#include "gptc/Package/OutputFolder.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace gptc;
using llvm::StringRef;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

// The folder to remove when a signal ends the process.
static std::string interrupted;

static llvm::Error say(const llvm::Twine &text) {
  return llvm::createStringError(text.str());
}

/// Whether `folder` is empty or holds a manifest.
static bool replaceable(StringRef folder) {
  std::error_code code;
  fs::directory_iterator it(folder, code);
  if (code)
    return false;
  llvm::SmallString<256> manifest(folder);
  path::append(manifest, "manifest.json");
  return it == fs::directory_iterator() || fs::exists(manifest);
}

llvm::Expected<OutputFolder> OutputFolder::create(StringRef wanted) {
  llvm::SmallString<256> full(wanted);
  if (std::error_code code = fs::make_absolute(full))
    return say("'" + wanted + "': " + code.message());
  path::remove_dots(full, /*remove_dot_dot=*/false);
  while (full.size() > 1 && full.back() == '/')
    full.pop_back();

  fs::file_status status;
  if (!fs::status(full, status)) {
    if (!fs::is_directory(status))
      return say("'" + wanted +
                 "': expected a folder, got a file; remove it "
                 "or choose another name for -o");
    if (!replaceable(full))
      return say("'" + wanted +
                 "': expected a new or empty folder, or an "
                 "earlier package, got a folder with other files; choose "
                 "another name for -o");
  }
  llvm::SmallString<256> parent(path::parent_path(full));
  if (!fs::is_directory(parent))
    return say("'" + wanted + "': expected the folder '" + parent +
               "' to exist; make it first");

  std::string temporary =
      (parent + "/." + path::filename(full) + ".XXXXXX").str();
  if (!mkdtemp(temporary.data()))
    return say("'" + wanted + "': cannot write in '" + parent + "': " +
               std::error_code(errno, std::generic_category()).message());
  ::chmod(temporary.c_str(), 0755);
  interrupted = temporary;
  llvm::sys::AddSignalHandler(
      [](void *) {
        if (!interrupted.empty())
          fs::remove_directories(interrupted);
      },
      nullptr);
  return OutputFolder(full.str().str(), std::move(temporary));
}

OutputFolder::OutputFolder(OutputFolder &&other) noexcept
    : wanted(std::move(other.wanted)),
      temporary(std::exchange(other.temporary, {})) {}

OutputFolder::~OutputFolder() {
  if (!temporary.empty())
    fs::remove_directories(temporary);
  interrupted.clear();
}

std::string OutputFolder::file(StringRef name) const {
  return temporary + "/" + name.str();
}

llvm::Error OutputFolder::write(StringRef name, StringRef contents) const {
  std::error_code code;
  llvm::raw_fd_ostream out(file(name), code, fs::OF_None);
  if (!code) {
    out << contents;
    out.close();
    code = out.error();
    out.clear_error();
  }
  return code ? say("'" + wanted + "/" + name + "': " + code.message())
              : llvm::Error::success();
}

void OutputFolder::remove(StringRef name) const { fs::remove(file(name)); }

llvm::Error OutputFolder::commit() {
  std::string earlier;
  if (fs::exists(wanted)) {
    // Exchanged in one step; else the old one moves away first.
    if (renameat2(AT_FDCWD, temporary.c_str(), AT_FDCWD, wanted.c_str(),
                  RENAME_EXCHANGE) == 0) {
      fs::remove_directories(temporary);
      temporary.clear();
      return llvm::Error::success();
    }
    earlier = temporary + ".old";
    if (std::error_code code = fs::rename(wanted, earlier))
      return say("'" + wanted + "': cannot be replaced: " + code.message());
  }
  if (std::error_code code = fs::rename(temporary, wanted)) {
    if (!earlier.empty())
      fs::rename(earlier, wanted);
    return say("'" + wanted + "': " + code.message());
  }
  temporary.clear();
  if (!earlier.empty())
    fs::remove_directories(earlier);
  return llvm::Error::success();
}
