//===- Fuzz.h - What the fuzz targets share ---------------------*- C++ -*-===//
//
// A target is libFuzzer's LLVMFuzzerTestOneInput. It may refuse any input with
// a message; what it may not do is crash, run into a sanitizer, hang, allocate
// beyond libFuzzer's limit, refuse without a message, or accept something that
// fails `require`.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_TEST_FUZZ_FUZZ_H
#define GPTC_TEST_FUZZ_FUZZ_H

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

namespace fuzz {

/// A property that holds for every input.
inline void require(bool holds, const char *what) {
  if (holds)
    return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

/// The rules that every message keeps: there is one, and it does not flood a
/// terminal.
inline void requireMessage(std::string_view message) {
  require(!message.empty(), "a refusal says why");
  require(message.size() <= 4096, "a message has at most 4 KB");
}

inline std::string_view text(const uint8_t *data, size_t size) {
  return {reinterpret_cast<const char *>(data), size};
}

/// The input cut at its first zero byte, for readers of two files.
inline std::pair<std::string_view, std::string_view>
twoTexts(const uint8_t *data, size_t size) {
  std::string_view all = text(data, size);
  size_t cut = all.find('\0');
  if (cut == std::string_view::npos)
    return {all, {}};
  return {all.substr(0, cut), all.substr(cut + 1)};
}

/// A file in memory, for readers that take a path. One for a whole process.
class MemoryFile {
public:
  MemoryFile() : descriptor(memfd_create("fuzz", MFD_CLOEXEC)) {
    require(descriptor >= 0, "memfd_create works");
    name = "/proc/self/fd/" + std::to_string(descriptor);
  }
  /// Its path, with these bytes in it.
  const std::string &with(const void *data, size_t size) {
    require(ftruncate(descriptor, 0) == 0 &&
                pwrite(descriptor, data, size, 0) == ssize_t(size),
            "the file in memory can be written");
    return name;
  }

private:
  int descriptor;
  std::string name;
};

/// Reads every byte of a span, so that a sanitizer sees one that is too long.
inline void touch(const uint8_t *data, size_t bytes) {
  uint8_t sum = 0;
  for (size_t i = 0; i < bytes; ++i)
    sum ^= data[i];
  asm volatile("" : : "r"(sum)); // the reads are not to be removed
}

} // namespace fuzz

#endif // GPTC_TEST_FUZZ_FUZZ_H
