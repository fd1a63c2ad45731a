//===- MappedFile.h - A file mapped for reading -----------------*- C++ -*-===//
//
// Owns a read-only, private mapping of a whole regular file. Folders, devices
// and pipes are refused. The mapping keeps its address when the object moves.
// A file that another process truncates while it is mapped is not guarded
// against (reading past its new end raises SIGBUS).
//
//===----------------------------------------------------------------------===//

#ifndef GPTC_CHECKPOINT_MAPPEDFILE_H
#define GPTC_CHECKPOINT_MAPPEDFILE_H

#include "gptc/Checkpoint/Error.h"
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gptc::checkpoint {

class MappedFile {
public:
  static Expected<MappedFile> open(const std::string &path);

  MappedFile(MappedFile &&other) noexcept;
  MappedFile &operator=(MappedFile &&other) noexcept;
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;
  ~MappedFile();

  const std::string &path() const { return filePath; }
  /// Page aligned; null for an empty file.
  const uint8_t *data() const { return begin; }
  /// In bytes.
  size_t size() const { return length; }
  std::string_view text() const {
    return {reinterpret_cast<const char *>(begin), length};
  }

private:
  MappedFile() = default;

  std::string filePath;
  const uint8_t *begin = nullptr;
  size_t length = 0;
};

/// Gives back the memory of the whole pages among `bytes` bytes of a mapping
/// from `data` on. Reading them again reads the file again.
void releasePages(const uint8_t *data, size_t bytes);

} // namespace gptc::checkpoint

#endif // GPTC_CHECKPOINT_MAPPEDFILE_H
