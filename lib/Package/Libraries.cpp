//===- Libraries.cpp - lib<name>.a and lib<name>.so -----------------------===//
//
// In process: the archive writer and lld are libraries, so a package needs no
// tool chain. The shared library names libc.so.6 as needed where the host has
// one; without it libc's symbols stay undefined and are found in the program
// that loads it.
//
//===----------------------------------------------------------------------===//
#include "Package.h"
#include "lld/Common/Driver.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

LLD_HAS_DRIVER(elf)

using namespace gptc;
using llvm::StringRef;

llvm::Error gptc::writeArchive(StringRef path, StringRef objectName,
                               StringRef object) {
  llvm::NewArchiveMember member(llvm::MemoryBufferRef(object, objectName));
  return llvm::writeArchive(path, std::move(member),
                            llvm::SymtabWritingMode::NormalSymtab,
                            llvm::object::Archive::K_GNU,
                            /*Deterministic=*/true, /*Thin=*/false);
}

llvm::Error gptc::linkSharedLibrary(StringRef objectPath, StringRef path,
                                    StringRef soname) {
  std::string object = objectPath.str(), out = path.str(), name = soname.str();
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
                                    out.c_str(),
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
  if (result.retCode)
    return llvm::createStringError(
        "linking " + name + " failed: " + StringRef(messages).trim().str());
  return llvm::Error::success();
}
