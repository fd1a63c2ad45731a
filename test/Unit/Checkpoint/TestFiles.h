//===- TestFiles.h - Good and broken files, made by the tests ---*- C++ -*-===//

#ifndef GPTC_TEST_UNIT_CHECKPOINT_TESTFILES_H
#define GPTC_TEST_UNIT_CHECKPOINT_TESTFILES_H

#include "gptc/Checkpoint/Checkpoint.h"
#include <bit>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <unistd.h>

namespace gptc::checkpoint::test {

/// A folder of its own for each test, removed at its end.
class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string name =
        (std::filesystem::temp_directory_path() / "gptc-XXXXXX").string();
    path = ::mkdtemp(name.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }

  std::string write(const std::string &name, std::string_view bytes) const {
    std::string file = (path / name).string();
    std::ofstream(file, std::ios::binary) << bytes;
    return file;
  }

  std::filesystem::path path;
};

inline std::string littleEndian(uint64_t value, unsigned bytes) {
  std::string result;
  for (unsigned i = 0; i < bytes; ++i)
    result += static_cast<char>(value >> (8 * i));
  return result;
}
inline std::string u32(uint64_t value) { return littleEndian(value, 4); }
inline std::string u64(uint64_t value) { return littleEndian(value, 8); }
inline std::string f32(float value) {
  return u32(std::bit_cast<uint32_t>(value));
}

/// Header length, header, data.
inline std::string safetensors(std::string_view header,
                               std::string_view data = {}) {
  return u64(header.size()) + std::string(header) + std::string(data);
}

/// Puts a GGUF v3 file together; the tests break one thing at a time.
struct GgufBuilder {
  std::string version = u32(3);
  std::string pairs, table, data;
  uint64_t pairCount = 0, tensorCount = 0, alignment = 32;

  static std::string text(std::string_view value) {
    return u64(value.size()) + std::string(value);
  }
  GgufBuilder &pair(std::string_view key, uint32_t type,
                    std::string_view value) {
    pairs += text(key) + u32(type) + std::string(value);
    ++pairCount;
    return *this;
  }
  /// `dims` innermost first, as in the file.
  GgufBuilder &tensor(std::string_view name,
                      std::initializer_list<uint64_t> dims, uint32_t type,
                      uint64_t offset) {
    table += text(name) + u32(dims.size());
    for (uint64_t dim : dims)
      table += u64(dim);
    table += u32(type) + u64(offset);
    ++tensorCount;
    return *this;
  }
  std::string build() const {
    std::string file =
        "GGUF" + version + u64(tensorCount) + u64(pairCount) + pairs + table;
    if (alignment)
      file.resize((file.size() + alignment - 1) / alignment * alignment);
    return file + data;
  }
};

/// Expects that opening `file` fails with a message of one line that names the
/// file and contains each of `parts`.
inline void expectRefused(const std::string &file,
                          std::initializer_list<std::string_view> parts) {
  Expected<Checkpoint> checkpoint = Checkpoint::open(file);
  ASSERT_FALSE(checkpoint) << "opened, expected: " << *parts.begin();
  const std::string &message = checkpoint.error().message;
  EXPECT_NE(message.find(file), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  for (std::string_view part : parts)
    EXPECT_NE(message.find(part), std::string::npos)
        << "expected '" << part << "' in: " << message;
}

} // namespace gptc::checkpoint::test

#endif // GPTC_TEST_UNIT_CHECKPOINT_TESTFILES_H
