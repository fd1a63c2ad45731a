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

/// What /bin/sh returned: nvcc's own status, or a negative one if it did not
/// come to an end of its own.
static int execute(StringRef nvcc, StringRef folder,
                   const std::vector<std::string> &arguments, StringRef log,
                   std::string &error) {
  // Paths go into the fatbin: nvcc runs in the folder and sees names only. It
  // pastes TMPDIR into command lines as it is, so it gets a harmless one, and
  // what it leaves when it is killed lies in the folder.
  llvm::SmallVector<StringRef> words{
      "sh", "-c", "cd \"$0\" && TMPDIR=. && export TMPDIR && exec \"$@\"",
      folder, nvcc};
  words.append(arguments.begin(), arguments.end());
  std::optional<StringRef> redirects[] = {StringRef(""), log, log};
  return llvm::sys::ExecuteAndWait("/bin/sh", words, std::nullopt, redirects, 0,
                                   0, &error);
}

/// Whether it is the text that nvcc complains of, not its headers, its host
/// compiler or its disk.
static bool complainsOfText(StringRef said, StringRef name) {
  return llvm::any_of(llvm::split(said, '\n'), [&](StringRef line) {
    return line.contains("error") &&
           (line.contains((name + ".cu(").str()) || line.starts_with("ptxas"));
  });
}

static std::string contents(StringRef path) {
  auto file = llvm::MemoryBuffer::getFile(path);
  return file ? (*file)->getBuffer().str() : "";
}

llvm::Expected<NvccResult> gptc::runNvcc(StringRef nvcc, NvccProduct product,
                                         const CudaTarget &target,
                                         StringRef folder, StringRef name,
                                         StringRef text) {
  auto at = [&](const llvm::Twine &file) {
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, file);
    return path.str().str();
  };
  std::string input = at(name + ".cu"), log = at("log");
  std::string output =
      (name + (product == NvccProduct::Ptx ? ".ptx" : ".fatbin")).str();
  std::error_code code;
  if (llvm::raw_fd_ostream out(input, code); !code) {
    out << "#line 1 \"/" << name << ".cu\"\n" << text;
    out.close();
    code = out.error();
    out.clear_error();
  }
  if (code)
    return llvm::createFileError(input, code);
  std::string error;
  int status = execute(
      nvcc, folder,
      nvccArguments(product, target, (name + ".cu").str(), output), log, error);
  std::string said = contents(log);
  NvccResult result;
  if (status > 0 && complainsOfText(said, name)) {
    result.failure = said;
    return result;
  }
  if (status != 0)
    return llvm::createStringError(
        fmt::format("expected '{}' to compile the kernels, but it {}{}{}; "
                    "check that it compiles a file of its own, and that there "
                    "is room in TMPDIR",
                    nvcc.str(),
                    status > 0 ? fmt::format("returned {}", status)
                               : "did not end by itself: " + error,
                    said.empty() ? "" : ": ", StringRef(said).trim().str()));
  // Not a pipe, which would be waited for.
  if (llvm::sys::fs::is_regular_file(at(output)))
    result.bytes = contents(at(output));
  if (result.bytes.empty())
    return llvm::createStringError(
        fmt::format("expected '{}' to write {}, got none", nvcc.str(), output));
  result.usage = parseUsage(said);
  return result;
}

llvm::Error gptc::checkProduct(NvccProduct product, StringRef bytes,
                               llvm::ArrayRef<std::string> functions) {
  std::string ptx;
  if (product == NvccProduct::Ptx) {
    ptx = bytes.str();
  } else {
    auto parts = fatbinParts(bytes);
    if (!parts)
      return parts.takeError();
    for (const FatbinPart &part : *parts)
      if (part.isPtx)
        ptx += part.bytes;
  }
  for (const std::string &function : functions)
    if (!StringRef(ptx).contains(".entry " + function + "("))
      return llvm::createStringError(fmt::format(
          "expected PTX of the kernel {} from nvcc, got none", function));
  return llvm::Error::success();
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
