//===- Libraries.cpp - lib<name>.a and lib<name>.so -----------------------===//
//
// In process: the archive writer and lld are libraries, so a package needs no
// tool chain. The shared library names libc.so.6 as needed where the host has
// one; without it libc's symbols stay undefined and are found in the program
// that loads it.
//
//===----------------------------------------------------------------------===//
#include "Package.h"
#include "gptc/Import/WriteFile.h"
#include "lld/Common/Driver.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <errno.h>
#include <fcntl.h>
#include <mutex>
#include <unistd.h>

LLD_HAS_DRIVER(elf)

using namespace gptc;
using llvm::StringRef;

llvm::Error gptc::writeArchive(StringRef path, StringRef objectName,
                               StringRef object) {
  llvm::NewArchiveMember member(llvm::MemoryBufferRef(object, objectName));
  auto archive = llvm::writeArchiveToBuffer(
      std::move(member), llvm::SymtabWritingMode::NormalSymtab,
      llvm::object::Archive::K_GNU, /*Deterministic=*/true, /*Thin=*/false);
  if (!archive)
    return archive.takeError();
  return writeFile(path, (*archive)->getBuffer());
}

/// `folder` as a path that is no option of lld's, and in which LLVM's temporary
/// files work, which lld makes beside its output: they do not below a folder
/// with '%' in its name. Such a one is opened, and goes by its descriptor,
/// which is returned. (The working directory is that of the whole process.)
static int openForLld(std::string &folder) {
  if (llvm::sys::path::is_relative(folder))
    folder.insert(0, "./");
  if (folder.find('%') == std::string::npos)
    return -1;
  int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file >= 0)
    folder = "/proc/self/fd/" + std::to_string(file);
  return file;
}

/// Whether a file of so many bytes could be written into `folder`; true too if
/// something other than a full disk is in the way, which lld will name. lld
/// maps its output, and a full disk would be a fault at the first touch.
static bool hasRoom(const std::string &folder, size_t bytes) {
  std::string name = folder + "/.room";
  int file =
      ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0)
    return true;
  int error = ::posix_fallocate(file, 0, off_t(bytes));
  ::unlink(name.c_str());
  ::close(file);
  return error != ENOSPC && error != EDQUOT;
}

llvm::Error gptc::linkSharedLibrary(StringRef folder, StringRef objectName,
                                    StringRef soname) {
  std::string place = folder.str(), name = soname.str();
  int opened = openForLld(place);
  llvm::scope_exit close([&] {
    if (opened >= 0)
      ::close(opened);
  });
  std::string object = place + "/" + objectName.str(),
              output = place + "/" + name;
  std::vector<const char *> args = {"ld.lld",
                                    "-shared",
                                    "--hash-style=gnu",
                                    "--build-id=none",
                                    "-z",
                                    "now",
                                    "-z",
                                    "relro",
                                    "-z",
                                    "noexecstack",
                                    "--threads=1",
                                    "-soname",
                                    name.c_str(),
                                    "-o",
                                    output.c_str(),
                                    object.c_str()};
  for (const char *libc :
       {"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6",
        "/usr/lib64/libc.so.6", "/usr/lib/libc.so.6"})
    if (llvm::sys::fs::exists(libc)) {
      args.push_back(libc);
      break;
    }
  auto failed = [&](StringRef why) {
    return llvm::createStringError("linking " + name + " failed: " + why);
  };
  // A library is its object and tables of a few names.
  uint64_t bytes = 0;
  if (!llvm::sys::fs::file_size(object, bytes) &&
      !hasRoom(place, bytes + (64 << 10)))
    return failed("No space left on device");

  // One lld for the process: its state and LLVM's options are global.
  static std::mutex lock;
  static bool usable = true;
  std::scoped_lock locked(lock);
  if (!usable)
    return failed("the linker broke down before");
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  lld::Result result =
      lld::lldMain(args, stream, stream, {{lld::Gnu, &lld::elf::link}});
  usable = result.canRunAgain;
  if (!result.retCode)
    return llvm::Error::success();
  // After a fault there is no message.
  return failed(messages.empty()
                    ? "No space left on device, or the linker broke down"
                    : StringRef(messages).trim());
}
