//===- Nvcc.cpp - CUDA C++ text to PTX and fatbins ------------------------===//
#include "gptc/Target/CUDA/Nvcc.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include <fmt/format.h>

using namespace gptc;
using llvm::StringRef;

llvm::Expected<std::string> gptc::findNvcc() {
  auto in = [](const llvm::Twine &folder) -> std::string {
    llvm::SmallString<256> path;
    folder.toVector(path);
    llvm::sys::path::append(path, "nvcc");
    llvm::sys::fs::make_absolute(path);
    return llvm::sys::fs::can_execute(path) ? path.str().str() : "";
  };
  // A toolkit that is named is meant; no other one takes its place.
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    if (const char *home = ::getenv(variable); home && *home) {
      std::string found = in(llvm::Twine(home) + "/bin");
      if (!found.empty())
        return found;
      return llvm::createStringError("expected nvcc in '%s/bin', which %s "
                                     "names; set %s to a CUDA toolkit, 12.0 or "
                                     "later, or write the text alone with "
                                     "--emit=cu",
                                     home, variable, variable);
    }
  if (auto found = llvm::sys::findProgramByName("nvcc")) {
    llvm::SmallString<256> path(*found);
    llvm::sys::fs::make_absolute(path);
    return path.str().str();
  }
  if (std::string found = in("/usr/local/cuda/bin"); !found.empty())
    return found;
  return llvm::createStringError(
      "expected nvcc, which --target=cuda compiles its kernels with, in "
      "$CUDA_HOME/bin, $CUDA_PATH/bin, PATH or /usr/local/cuda/bin; install "
      "the CUDA toolkit, 12.0 or later "
      "(https://developer.nvidia.com/cuda-downloads), or write the text alone "
      "with --emit=cu");
}

std::vector<std::string> gptc::nvccArguments(NvccProduct product,
                                             const CudaTarget &target,
                                             StringRef input,
                                             StringRef output) {
  const int n = target.capability;
  std::string code =
      product == NvccProduct::Ptx
          ? fmt::format("arch=compute_{0},code=compute_{0}", n)
          : fmt::format("arch=compute_{0},code=[sm_{0},compute_{0}]", n);
  std::vector<std::string> arguments = {
      product == NvccProduct::Ptx ? "-ptx" : "-fatbin", "-std=c++17",
      // Sums and products are rounded as they are written.
      "-fmad=false",
      // Names of lines in profilers; PTX that a person can read in the fatbin.
      "-lineinfo", "-gencode=" + code,
      // Names of the headers' functions that lines were inlined from hold a
      // hash of this path, which nvcc would make that of the folder.
      "-Xcicc", "--orig_src_path_name", "-Xcicc", "/" + input.str()};
  if (product == NvccProduct::Fatbin)
    arguments.insert(arguments.end(), {"-no-compress", "-Xptxas", "-v"});
  arguments.insert(arguments.end(), {input.str(), "-o", output.str()});
  return arguments;
}

/// "Used 40 registers, used 1 barriers, 512 bytes smem": the number before a
/// word.
static int64_t numberBefore(StringRef line, StringRef word) {
  size_t end = line.find(word);
  if (end == StringRef::npos)
    return 0;
  StringRef before = line.take_front(end).rtrim();
  int64_t n = 0;
  before.take_back(before.size() - before.find_last_not_of("0123456789") - 1)
      .getAsInteger(10, n);
  return n;
}

std::vector<CudaUsage> gptc::parseUsage(StringRef log) {
  std::vector<CudaUsage> all;
  for (StringRef line : llvm::split(log, '\n')) {
    if (line.contains("Compiling entry function '")) {
      StringRef name = line.split("Compiling entry function '").second;
      all.push_back({name.split('\'').first.str()});
    } else if (all.empty()) {
      continue;
    } else if (line.contains("bytes stack frame")) {
      all.back().stackBytes += numberBefore(line, "bytes stack frame");
      all.back().spillStores += numberBefore(line, "bytes spill stores");
      all.back().spillLoads += numberBefore(line, "bytes spill loads");
    } else if (line.contains("Used ")) {
      all.back().registers = numberBefore(line, "registers");
      all.back().sharedBytes = numberBefore(line, "bytes smem");
    }
  }
  return all;
}

llvm::Expected<NvccResult> gptc::runNvcc(StringRef nvcc, NvccProduct product,
                                         const CudaTarget &target,
                                         StringRef name, StringRef text) {
  llvm::SmallString<128> folder;
  if (auto code = llvm::sys::fs::createUniqueDirectory("gptc-nvcc", folder))
    return llvm::createStringError(code,
                                   "expected to make a temporary folder: "
                                   "%s",
                                   code.message().c_str());
  auto at = [&](const llvm::Twine &file) {
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, file);
    return path.str().str();
  };
  std::string input = at(name + ".cu"), log = at("log");
  std::string output =
      (name + (product == NvccProduct::Ptx ? ".ptx" : ".fatbin")).str();
  auto run = [&]() -> llvm::Expected<NvccResult> {
    std::error_code code;
    llvm::raw_fd_ostream out(input, code);
    if (code)
      return llvm::createFileError(input, code);
    out << "#line 1 \"/" << name << ".cu\"\n" << text;
    out.close();
    if (out.has_error())
      return llvm::createFileError(input, out.error());
    // Paths go into the fatbin: nvcc runs in the folder and sees names only.
    std::vector<std::string> arguments =
        nvccArguments(product, target, (name + ".cu").str(), output);
    llvm::SmallVector<StringRef> words{"sh", "-c", "cd \"$0\" && exec \"$@\"",
                                       folder, nvcc};
    words.append(arguments.begin(), arguments.end());
    std::optional<StringRef> redirects[] = {StringRef(""), StringRef(log),
                                            StringRef(log)};
    std::string error;
    int status = llvm::sys::ExecuteAndWait("/bin/sh", words, std::nullopt,
                                           redirects, 0, 0, &error);
    NvccResult result;
    auto said = llvm::MemoryBuffer::getFile(log);
    std::string text = said ? (*said)->getBuffer().str() : "";
    if (status != 0) {
      result.failure = error + text;
      if (result.failure.empty())
        result.failure = fmt::format("{} returned {}", nvcc.str(), status);
      return result;
    }
    auto bytes = llvm::MemoryBuffer::getFile(at(output));
    if (!bytes)
      return llvm::createFileError(at(output), bytes.getError());
    result.bytes = (*bytes)->getBuffer().str();
    result.usage = parseUsage(text);
    return result;
  };
  auto result = run();
  llvm::sys::fs::remove_directories(folder);
  return result;
}

// A header (u32 magic, u16 version, u16 its bytes, u64 bytes that follow), then
// parts: u16 kind, u16 version, u32 bytes of this header, u64 of what follows;
// u32 compressed bytes at 16, u32 architecture at 28.
llvm::Expected<std::vector<FatbinPart>> gptc::fatbinParts(StringRef fatbin) {
  constexpr size_t head = 16, partHead = 32;
  enum { Ptx = 1, Elf = 2 };
  auto read = [](StringRef at, size_t offset, auto value) {
    memcpy(&value, at.data() + offset, sizeof value);
    return value;
  };
  auto bad = [] {
    return llvm::createStringError("expected a fatbin of PTX and machine code "
                                   "as nvcc -fatbin -no-compress writes it");
  };
  if (fatbin.size() < head || read(fatbin, 0, uint32_t()) != 0xba55ed50 ||
      read(fatbin, 6, uint16_t()) > fatbin.size())
    return bad();
  StringRef rest = fatbin.drop_front(read(fatbin, 6, uint16_t()));
  if (read(fatbin, 8, uint64_t()) != rest.size())
    return bad();
  std::vector<FatbinPart> parts;
  while (!rest.empty()) {
    if (rest.size() < partHead)
      return bad();
    uint16_t kind = read(rest, 0, uint16_t());
    uint64_t first = read(rest, 4, uint32_t()),
             bytes = read(rest, 8, uint64_t());
    if ((kind != Ptx && kind != Elf) || read(rest, 16, uint32_t()) != 0 ||
        first < partHead || first > rest.size() || bytes > rest.size() - first)
      return bad();
    StringRef content = rest.substr(first, bytes);
    if (kind == Ptx) // padded
      content = content.rtrim('\0');
    parts.push_back({kind == Ptx, read(rest, 28, uint32_t()), content.str()});
    rest = rest.drop_front(first + bytes);
  }
  return parts;
}
