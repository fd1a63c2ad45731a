//===- WriteFile.cpp - a whole file or the old one ------------------------===//
//
// LLVM's own temporary files replace every '%' of the path they are given,
// those of its folders too; mkostemp's are for their owner only, and the umask
// can be read only by setting it, for all threads. So this makes the file
// itself. It is locked while it is written: what killed runs have left is not,
// and the next run for a file of that folder removes it.
//
//===----------------------------------------------------------------------===//
#include "gptc/Import/WriteFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Signals.h"
#include "llvm/Support/raw_ostream.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
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

static constexpr StringRef prefix = ".gptc-", suffix = ".tmp";

/// Whether the file of that name is still this one, which no other run holds.
static bool hold(int file, const std::string &name) {
  struct stat open, named;
  if (::flock(file, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK)
    return false;
  return !::fstat(file, &open) && !::stat(name.c_str(), &named) &&
         open.st_ino == named.st_ino;
}

static void removeAbandoned(StringRef folder) {
  std::vector<std::string> found;
  std::error_code code;
  for (fs::directory_iterator it(folder, code), end; !code && it != end;
       it.increment(code)) {
    StringRef name = llvm::sys::path::filename(it->path());
    if (name.starts_with(prefix) && name.ends_with(suffix) &&
        it->type() == fs::file_type::regular_file)
      found.push_back(it->path());
  }
  for (const std::string &name : found) {
    int file = ::open(name.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0)
      continue;
    // A file system without locks keeps them.
    if (!::flock(file, LOCK_EX | LOCK_NB))
      ::unlink(name.c_str());
    ::close(file);
  }
}

/// A new locked file beside others of the folder; -1 and errno. Another run may
/// take it for an abandoned one until it is locked.
static int createTemporary(StringRef folder, std::string &name) {
  while (true) {
    name = (folder + "/" + prefix +
            llvm::utohexstr(llvm::sys::Process::GetRandomNumber()) + suffix)
               .str();
    int file =
        ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (file < 0 && errno == EEXIST)
      continue;
    if (file < 0 || hold(file, name))
      return file;
    ::close(file);
  }
}

void gptc::registerFileRemoval() {
  static const bool once = [] {
    constexpr int signals[] = {SIGHUP, SIGINT, SIGTERM, SIGUSR2, SIGPIPE};
    struct sigaction before[std::size(signals)];
    for (auto [number, action] : llvm::zip(signals, before))
      ::sigaction(number, nullptr, &action);
    llvm::sys::AddSignalHandler([](void *) {}, nullptr);
    for (auto [number, action] : llvm::zip(signals, before))
      if (action.sa_handler == SIG_IGN)
        ::sigaction(number, &action, nullptr);
    return true;
  }();
  (void)once;
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
  StringRef folder = llvm::sys::path::parent_path(path);
  if (folder.empty())
    folder = ".";
  removeAbandoned(folder);
  std::string temporary;
  int file = createTemporary(folder, temporary);
  if (file < 0)
    return fail(path, std::error_code(errno, std::generic_category()));
  registerFileRemoval();
  llvm::sys::RemoveFileOnSignal(temporary);
  // The lock stays until the file has its name.
  int written = ::dup(file);
  std::error_code code = written < 0
                             ? std::error_code(errno, std::generic_category())
                             : writeAll(written, contents);
  if (!code)
    code = fs::rename(temporary, path);
  if (code)
    fs::remove(temporary);
  ::close(file);
  llvm::sys::DontRemoveFileOnSignal(temporary);
  return code ? fail(path, code) : llvm::Error::success();
}
