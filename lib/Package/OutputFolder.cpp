//===- OutputFolder.cpp - all of a folder or none of it -------------------===//
#include "gptc/Package/OutputFolder.h"
#include "gptc/Import/WriteFile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <atomic>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace gptc;
using llvm::StringRef;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

// What a signal that ends the process must remove: the folders that are being
// written, of all threads. Never freed.
namespace {
struct Interrupted {
  bool taken;
  int folder; // its descriptor
  char path[PATH_MAX];
};
} // namespace
static Interrupted interrupted[16];
static std::atomic_flag interruptedTaken;
static struct sigaction earlierActions[3];
static constexpr int interrupts[] = {SIGINT, SIGTERM, SIGHUP};

static sigset_t allInterrupts() {
  sigset_t set;
  sigemptyset(&set);
  for (int number : interrupts)
    sigaddset(&set, number);
  return set;
}

static void takeInterrupted() {
  while (interruptedTaken.test_and_set(std::memory_order_acquire))
    ::sched_yield();
}
static void giveInterrupted() {
  interruptedTaken.clear(std::memory_order_release);
}

namespace {
/// Has the table, and no signal on this thread, whose handler waits for it.
class Uninterrupted {
public:
  Uninterrupted() {
    sigset_t set = allInterrupts();
    pthread_sigmask(SIG_BLOCK, &set, &before);
    takeInterrupted();
  }
  ~Uninterrupted() {
    giveInterrupted();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  Uninterrupted(const Uninterrupted &) = delete;

private:
  sigset_t before;
};
} // namespace

/// Only async-signal-safe calls: the process may be in the middle of malloc.
/// The folders hold no others.
static void removeAndRaise(int number) {
  char entries[4096];
  const int before = errno;
  takeInterrupted();
  for (Interrupted &place : interrupted) {
    // Removing may move what has not been read.
    for (int pass = 0; place.taken && pass < 4 && ::rmdir(place.path); ++pass) {
      ::lseek(place.folder, 0, SEEK_SET);
      ssize_t bytes;
      while ((bytes = ::getdents64(place.folder, entries, sizeof(entries))) > 0)
        for (ssize_t at = 0; at < bytes;) {
          auto *entry = reinterpret_cast<dirent64 *>(entries + at);
          ::unlinkat(place.folder, entry->d_name, 0);
          at += entry->d_reclen;
        }
    }
  }
  for (size_t i = 0; i < std::size(interrupts); ++i)
    if (interrupts[i] == number)
      ::sigaction(number, &earlierActions[i], nullptr);
  giveInterrupted();
  ::raise(number);
  errno = before; // where the earlier action returns
}

static bool isTaken(const Interrupted &place) { return place.taken; }

/// LLVM's handlers, which remove single files, come after. What finds no place
/// stays behind, for the next run to remove. Under Uninterrupted.
static void removeOnInterrupt(const std::string &folder, int descriptor) {
  auto *place = llvm::find_if_not(interrupted, isTaken);
  if (descriptor < 0 || place == std::end(interrupted) ||
      folder.size() >= sizeof(place->path))
    return;
  bool first = llvm::none_of(interrupted, isTaken);
  memcpy(place->path, folder.c_str(), folder.size() + 1);
  place->folder = descriptor;
  place->taken = true;
  if (!first)
    return;
  registerFileRemoval(); // LLVM's come first
  struct sigaction action = {};
  action.sa_handler = removeAndRaise;
  action.sa_mask = allInterrupts();
  for (size_t i = 0; i < std::size(interrupts); ++i) {
    ::sigaction(interrupts[i], nullptr, &earlierActions[i]);
    if (earlierActions[i].sa_handler != SIG_IGN)
      ::sigaction(interrupts[i], &action, nullptr);
  }
}

static void keepOnInterrupt(int descriptor) {
  Uninterrupted now;
  auto *place = llvm::find_if(interrupted, [&](const Interrupted &each) {
    return isTaken(each) && each.folder == descriptor;
  });
  if (place == std::end(interrupted))
    return;
  place->taken = false;
  if (llvm::any_of(interrupted, isTaken))
    return;
  for (size_t i = 0; i < std::size(interrupts); ++i)
    ::sigaction(interrupts[i], &earlierActions[i], nullptr);
}

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

/// Locks a temporary folder for as long as the descriptor is open; -1 and errno
/// if another process holds it (EWOULDBLOCK) or has removed it (ENOENT), or the
/// file system knows no locks.
static int lockFolder(const std::string &folder) {
  int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  struct stat status;
  if (file >= 0 &&
      (::flock(file, LOCK_EX | LOCK_NB) || ::stat(folder.c_str(), &status))) {
    int error = errno;
    ::close(file);
    errno = error;
    return -1;
  }
  return file;
}

/// Removes what runs for the same output have left that were killed.
static void removeAbandoned(StringRef parent, StringRef prefix) {
  std::vector<std::string> found;
  std::error_code code;
  for (fs::directory_iterator it(parent, code), end; !code && it != end;
       it.increment(code)) {
    StringRef name = path::filename(it->path());
    if (name.starts_with(prefix) && name.size() == prefix.size() + 6 &&
        it->type() == fs::file_type::directory_file)
      found.push_back(it->path());
  }
  for (const std::string &folder : found)
    if (int lock = lockFolder(folder); lock >= 0) {
      fs::remove_directories(folder);
      ::close(lock);
    }
}

llvm::Expected<OutputFolder> OutputFolder::create(StringRef wanted) {
  llvm::SmallString<256> full(wanted);
  if (std::error_code code = fs::make_absolute(full))
    return say("'" + wanted + "': " + code.message());
  path::remove_dots(full, /*remove_dot_dot=*/false);
  while (full.size() > 1 && full.back() == '/')
    full.pop_back();
  // Through a link, what it points to is replaced, and the link stays.
  if (llvm::SmallString<256> real; !fs::real_path(full, real))
    full = real;

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

  std::string prefix = ("." + path::filename(full) + ".gptc-").str();
  auto made = make(parent, prefix, full.str().str());
  if (!made)
    return say("'" + wanted + "': cannot write in '" + parent +
               "': " + llvm::toString(made.takeError()));
  ::chmod(made->folder.c_str(), 0755);
  return made;
}

llvm::Expected<OutputFolder> OutputFolder::temporary(StringRef prefix) {
  llvm::SmallString<256> parent;
  path::system_temp_directory(/*ErasedOnReboot=*/true, parent);
  if (std::error_code code = fs::make_absolute(parent))
    return say("'" + parent + "': " + code.message());
  auto made = make(parent, prefix, "");
  if (!made)
    return say("'" + parent + "': cannot make a temporary folder: " +
               llvm::toString(made.takeError()) + "; set TMPDIR");
  return made;
}

/// The error is the system's words alone.
llvm::Expected<OutputFolder>
OutputFolder::make(StringRef parent, StringRef prefix, std::string wanted) {
  removeAbandoned(parent, prefix);
  std::string folder;
  int lock = -1;
  Uninterrupted now;
  // Another run may take the folder for an abandoned one until it is locked.
  do {
    folder = (parent + "/" + prefix + "XXXXXX").str();
    if (!mkdtemp(folder.data()))
      return say(std::error_code(errno, std::generic_category()).message());
    lock = lockFolder(folder);
  } while (lock < 0 && (errno == EWOULDBLOCK || errno == ENOENT));
  removeOnInterrupt(folder, lock);
  return OutputFolder(std::move(wanted), std::move(folder), lock);
}

OutputFolder::OutputFolder(OutputFolder &&other) noexcept
    : wanted(std::move(other.wanted)), folder(std::exchange(other.folder, {})),
      lock(std::exchange(other.lock, -1)) {}

OutputFolder::~OutputFolder() {
  if (!folder.empty())
    fs::remove_directories(folder);
  if (lock < 0)
    return;
  keepOnInterrupt(lock);
  ::close(lock);
}

std::string OutputFolder::file(StringRef name) const {
  return folder + "/" + name.str();
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
  keepOnInterrupt(lock); // the descriptor will be that of the package
  // A name that is free, or an empty folder. Tried first, not asked for:
  // another run may take the name at any time.
  std::error_code code = fs::rename(folder, wanted);
  if (!code) {
    folder.clear();
    return llvm::Error::success();
  }
  std::string earlier = folder;
  if (code == std::errc::directory_not_empty ||
      code == std::errc::file_exists) {
    // Exchanged in one step; else the old one moves away first.
    if (renameat2(AT_FDCWD, folder.c_str(), AT_FDCWD, wanted.c_str(),
                  RENAME_EXCHANGE) == 0) {
      code = {};
    } else {
      earlier += ".old";
      code = fs::rename(wanted, earlier);
      if (!code && (code = fs::rename(folder, wanted)))
        fs::rename(earlier, wanted);
    }
  }
  if (code)
    return say("'" + wanted + "': cannot be replaced: " + code.message());
  folder.clear();
  fs::remove_directories(earlier);
  return llvm::Error::success();
}
