//===- GgufMetadata.h - Reading GGUF values, inside this room ---*- C++ -*-===//

#ifndef GPTC_LIB_CHECKPOINT_GGUFMETADATA_H
#define GPTC_LIB_CHECKPOINT_GGUFMETADATA_H

#include "gptc/Checkpoint/Gguf.h"
#include <optional>

namespace gptc::checkpoint::gguf {

/// Reads little-endian values from a mapping, in order; every read is checked
/// against its end and gives nothing, without moving, when it does not fit.
class Cursor {
public:
  explicit Cursor(const MappedFile &file)
      : begin(file.data()), length(file.size()) {}

  uint64_t position() const { return at; }
  uint64_t left() const { return length - at; }
  const uint8_t *here() const { return begin + at; }

  /// An unsigned number of `bytes` (1, 2, 4 or 8) bytes.
  std::optional<uint64_t> number(unsigned bytes);
  /// A u64 length and as many bytes.
  std::optional<std::string_view> string();
  bool skip(uint64_t bytes);

private:
  const uint8_t *begin;
  uint64_t length;
  uint64_t at = 0;
};

/// Reads `count` key-value pairs at the cursor.
class MetadataBuilder {
public:
  MetadataBuilder(const MappedFile &file, Cursor &cursor)
      : file(file), cursor(cursor) {}

  Expected<Metadata> read(uint64_t count);

private:
  Expected<Value> readValue(std::string_view key, uint64_t type);
  Expected<Value> readArray(std::string_view key);
  Expected<void> readElements(std::string_view key, Array &array, int depth);
  Error error(std::string_view key, std::string_view rule) const;
  Error truncated(std::string_view key) const;

  const MappedFile &file;
  Cursor &cursor;
};

} // namespace gptc::checkpoint::gguf

#endif // GPTC_LIB_CHECKPOINT_GGUFMETADATA_H
