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
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <fcntl.h>
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

namespace {
/// The working directory for as long as it lives. LLVM's temporary files, which
/// lld makes beside its output, do not work below a folder with '%' in its
/// name.
class WorkingFolder {
public:
  explicit WorkingFolder(const std::string &folder)
      : before(::open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)),
        good(before >= 0 && ::chdir(folder.c_str()) == 0) {}
  ~WorkingFolder() {
    if (before < 0)
      return;
    good = ::fchdir(before) == 0; // it was the working directory just now
    ::close(before);
  }
  WorkingFolder(const WorkingFolder &) = delete;
  explicit operator bool() const { return good; }

private:
  int before;
  bool good;
};
} // namespace

llvm::Error gptc::linkSharedLibrary(StringRef folder, StringRef objectName,
                                    StringRef soname) {
  std::string object = objectName.str(), name = soname.str();
  WorkingFolder inside(folder.str());
  if (!inside)
    return llvm::createStringError(
        "'" + folder.str() + "': cannot be entered: " +
        std::error_code(errno, std::generic_category()).message());
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
                                    name.c_str(),
                                    object.c_str()};
  for (const char *libc :
       {"/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6",
        "/usr/lib64/libc.so.6", "/usr/lib/libc.so.6"})
    if (llvm::sys::fs::exists(libc)) {
      args.push_back(libc);
      break;
    }
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  lld::Result result =
      lld::lldMain(args, stream, stream, {{lld::Gnu, &lld::elf::link}});
  // lld maps its output. With a full disk the first touch is a fault, from
  // which it comes back without a message.
  if (result.retCode)
    return llvm::createStringError("linking " + name + " failed: " +
                                   (messages.empty()
                                        ? "No space left on device, or the "
                                          "linker broke down"
                                        : StringRef(messages).trim().str()));
  return llvm::Error::success();
}
