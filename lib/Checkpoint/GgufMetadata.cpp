//===- GgufMetadata.cpp - GGUF's typed key-value pairs, from bytes --------===//
//
// Counts and lengths are compared with the bytes that are left before anything
// is allocated by them.
//
//===----------------------------------------------------------------------===//

#include "GgufMetadata.h"
#include <algorithm>
#include <bit>
#include <fmt/format.h>

using namespace gptc::checkpoint;
using namespace gptc::checkpoint::gguf;

/// The specification's bound on a key.
static constexpr size_t maxKeyBytes = 65535;
static constexpr int maxArrayDepth = 8;

std::optional<uint64_t> Cursor::number(unsigned bytes) {
  if (bytes > left())
    return std::nullopt;
  uint64_t value = 0;
  for (unsigned i = bytes; i-- > 0;)
    value = value << 8 | begin[at + i];
  at += bytes;
  return value;
}

std::optional<std::string_view> Cursor::string() {
  uint64_t start = at;
  std::optional<uint64_t> size = number(8);
  if (!size || *size > left()) {
    at = start;
    return std::nullopt;
  }
  std::string_view text(reinterpret_cast<const char *>(here()), *size);
  at += *size;
  return text;
}

bool Cursor::skip(uint64_t bytes) {
  if (bytes > left())
    return false;
  at += bytes;
  return true;
}

/// Bytes of one value; 0 for those of variable size.
static unsigned fixedBytes(ValueType type) {
  switch (type) {
  case ValueType::Uint8:
  case ValueType::Int8:
  case ValueType::Bool:
    return 1;
  case ValueType::Uint16:
  case ValueType::Int16:
    return 2;
  case ValueType::Uint32:
  case ValueType::Int32:
  case ValueType::Float32:
    return 4;
  case ValueType::Uint64:
  case ValueType::Int64:
  case ValueType::Float64:
    return 8;
  case ValueType::String:
  case ValueType::Array:
    break;
  }
  return 0;
}

static int64_t signExtend(uint64_t bits, unsigned bytes) {
  unsigned shift = 64 - 8 * bytes;
  return static_cast<int64_t>(bits << shift) >> shift;
}

static uint64_t loadBits(const uint8_t *source, unsigned bytes) {
  uint64_t value = 0;
  for (unsigned i = bytes; i-- > 0;)
    value = value << 8 | source[i];
  return value;
}

static bool isSigned(ValueType type) {
  return type == ValueType::Int8 || type == ValueType::Int16 ||
         type == ValueType::Int32 || type == ValueType::Int64;
}

bool Array::isReal() const {
  return type == ValueType::Float32 || type == ValueType::Float64;
}

bool Array::isInteger() const { return fixedBytes(type) != 0 && !isReal(); }

int64_t Array::integerAt(uint64_t index) const {
  unsigned bytes = fixedBytes(type);
  uint64_t bits = loadBits(data + index * bytes, bytes);
  if (isSigned(type))
    return signExtend(bits, bytes);
  return static_cast<int64_t>(std::min(bits, static_cast<uint64_t>(INT64_MAX)));
}

double Array::realAt(uint64_t index) const {
  unsigned bytes = fixedBytes(type);
  uint64_t bits = loadBits(data + index * bytes, bytes);
  if (type == ValueType::Float32)
    return std::bit_cast<float>(static_cast<uint32_t>(bits));
  return std::bit_cast<double>(bits);
}

Error MetadataBuilder::error(std::string_view key,
                             std::string_view rule) const {
  return Error{fmt::format("{}: key {}: {}", file.path(), quote(key), rule)};
}

Error MetadataBuilder::truncated(std::string_view key) const {
  return error(key, fmt::format("value at byte {} goes beyond the end of the "
                                "file ({} bytes); the file is truncated or "
                                "damaged",
                                cursor.position(), file.size()));
}

/// Checks the type and count at the cursor and steps over the elements.
Expected<void> MetadataBuilder::readElements(std::string_view key, Array &array,
                                             int depth) {
  std::optional<uint64_t> type = cursor.number(4);
  std::optional<uint64_t> count = type ? cursor.number(8) : std::nullopt;
  if (!count)
    return truncated(key);
  if (*type > static_cast<uint64_t>(ValueType::Float64))
    return error(key, fmt::format("expected an element type from 0 to 12, got "
                                  "{}",
                                  *type));
  array.type = static_cast<ValueType>(*type);
  array.count = *count;

  // The least that an element takes: itself, a string's length, or an array's
  // type and count.
  unsigned least = fixedBytes(array.type);
  if (least == 0)
    least = array.type == ValueType::String ? 8 : 12;
  if (*count > cursor.left() / least)
    return error(key,
                 fmt::format("expected at most {} elements of {} in the "
                             "{} bytes that are left, got {}",
                             cursor.left() / least, valueTypeName(array.type),
                             cursor.left(), *count));

  if (array.type == ValueType::String) {
    array.strings.reserve(*count);
    for (uint64_t i = 0; i < *count; ++i) {
      std::optional<std::string_view> text = cursor.string();
      if (!text)
        return truncated(key);
      array.strings.push_back(*text);
    }
    return {};
  }
  if (array.type == ValueType::Array) {
    if (depth == maxArrayDepth)
      return error(key, fmt::format("arrays nested deeper than {} levels",
                                    maxArrayDepth));
    for (uint64_t i = 0; i < *count; ++i) {
      Array nested;
      Expected<void> read = readElements(key, nested, depth + 1);
      if (!read)
        return read;
    }
    return {};
  }
  array.data = cursor.here();
  cursor.skip(*count * fixedBytes(array.type));
  if (array.type == ValueType::Bool)
    for (uint64_t i = 0; i < *count; ++i)
      if (array.data[i] > 1)
        return error(key, fmt::format("element {}: expected a bool of 0 or 1, "
                                      "got {}",
                                      i, array.data[i]));
  return {};
}

Expected<Value> MetadataBuilder::readArray(std::string_view key) {
  Array array;
  Expected<void> elements = readElements(key, array, 1);
  if (!elements)
    return elements.error();
  return Value{ValueType::Array, std::move(array)};
}

Expected<Value> MetadataBuilder::readValue(std::string_view key,
                                           uint64_t typeNumber) {
  if (typeNumber > static_cast<uint64_t>(ValueType::Float64))
    return error(key, fmt::format("expected a value type from 0 to 12, got {}",
                                  typeNumber));
  auto type = static_cast<ValueType>(typeNumber);
  if (type == ValueType::Array)
    return readArray(key);
  if (type == ValueType::String) {
    std::optional<std::string_view> text = cursor.string();
    if (!text)
      return truncated(key);
    return Value{type, *text};
  }

  unsigned bytes = fixedBytes(type);
  std::optional<uint64_t> bits = cursor.number(bytes);
  if (!bits)
    return truncated(key);
  if (type == ValueType::Bool) {
    if (*bits > 1)
      return error(key,
                   fmt::format("expected a bool of 0 or 1, got {}", *bits));
    return Value{type, *bits == 1};
  }
  if (type == ValueType::Float32)
    return Value{type,
                 double{std::bit_cast<float>(static_cast<uint32_t>(*bits))}};
  if (type == ValueType::Float64)
    return Value{type, std::bit_cast<double>(*bits)};
  if (isSigned(type))
    return Value{type, signExtend(*bits, bytes)};
  return Value{type, *bits};
}

Expected<Metadata> MetadataBuilder::read(uint64_t count) {
  Metadata metadata;
  metadata.file = file.path();
  for (uint64_t i = 0; i < count; ++i) {
    std::optional<std::string_view> key = cursor.string();
    std::optional<uint64_t> type = key ? cursor.number(4) : std::nullopt;
    if (!type)
      return Error{fmt::format("{}: metadata: key {} of {}, at byte {}, goes "
                               "beyond the end of the file ({} bytes); the "
                               "file is truncated or damaged",
                               file.path(), i + 1, count, cursor.position(),
                               file.size())};
    if (key->empty() || key->size() > maxKeyBytes)
      return Error{fmt::format("{}: metadata: key {} of {}: expected a length "
                               "from 1 to {}, got {}",
                               file.path(), i + 1, count, maxKeyBytes,
                               key->size())};
    Expected<Value> value = readValue(*key, *type);
    if (!value)
      return value.error();
    if (!metadata.index.emplace(*key, metadata.list.size()).second)
      return error(*key, "duplicate key");
    metadata.list.push_back({*key, std::move(*value)});
  }
  return metadata;
}
