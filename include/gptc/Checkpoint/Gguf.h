//===- Gguf.h - The GGUF format ---------------------------------*- C++ -*-===//
//
// Reads little-endian GGUF v3: typed metadata and the table of tensors. Refuses
// other versions and big-endian files in words, counts and lengths beyond the
// file, duplicate or empty keys, alignments that are no power of two, tensors
// with a zero dimension, more than 4 dimensions, an element type that this
// version does not read, or bytes that are misaligned, shared or out of the
// file, and files that are one part of several. Spec:
// https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
//
//===----------------------------------------------------------------------===//

#ifndef GPTC_CHECKPOINT_GGUF_H
#define GPTC_CHECKPOINT_GGUF_H

#include "gptc/Checkpoint/MappedFile.h"
#include "gptc/Checkpoint/Tensor.h"
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

namespace gptc::checkpoint::gguf {

/// The number of each type in the file.
enum class ValueType : uint32_t {
  Uint8 = 0,
  Int8 = 1,
  Uint16 = 2,
  Int16 = 3,
  Uint32 = 4,
  Int32 = 5,
  Float32 = 6,
  Bool = 7,
  String = 8,
  Array = 9,
  Uint64 = 10,
  Int64 = 11,
  Float64 = 12,
};

/// "uint32", "string", ...
std::string_view valueTypeName(ValueType type);

/// An array in the mapping. Strings are views of it; numbers and bools are read
/// through `integerAt` and `realAt`, because they may be unaligned. Arrays of
/// arrays are checked and counted, but not kept.
struct Array {
  ValueType type = ValueType::Uint8;
  uint64_t count = 0;
  std::vector<std::string_view> strings;
  const uint8_t *data = nullptr;

  /// Element `index` (< count) of an integer or bool array; uint64 values above
  /// the int64 range read as the largest int64.
  int64_t integerAt(uint64_t index) const;
  /// Element `index` (< count) of a float32 or float64 array.
  double realAt(uint64_t index) const;
  bool isInteger() const;
  bool isReal() const;
};

struct Value {
  ValueType type = ValueType::Uint8;
  /// All signed types as int64, all unsigned ones as uint64, both floats as
  /// double. A string is a view of the mapping.
  std::variant<bool, int64_t, uint64_t, double, std::string_view, Array> data;

  /// For messages: "uint32 7", "string 'llama'", "array of 3 float32".
  std::string describe() const;
};

struct Entry {
  std::string_view key;
  Value value;
};

/// The metadata of a file, with the typed reads of json::Reader. Views point
/// into the mapping that it was read from.
class Metadata {
public:
  const std::vector<Entry> &entries() const { return list; }
  /// Null when absent.
  const Value *find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key) != nullptr; }
  const std::string &where() const { return file; }

  /// Any integer type whose value fits in int64.
  Expected<int64_t> integer(std::string_view key) const;
  Expected<int64_t> integerOr(std::string_view key, int64_t absent) const;
  /// float32, float64 or any integer type.
  Expected<double> real(std::string_view key) const;
  Expected<double> realOr(std::string_view key, double absent) const;
  Expected<std::string> string(std::string_view key) const;
  Expected<std::string> stringOr(std::string_view key,
                                 std::string_view absent) const;
  Expected<bool> boolean(std::string_view key) const;
  Expected<bool> booleanOr(std::string_view key, bool absent) const;
  Expected<const Array *> array(std::string_view key) const;
  Expected<const Array *> strings(std::string_view key) const;

  /// "<file>: key '<key>': <rule>", for checks made by the caller.
  Error error(std::string_view key, std::string_view rule) const;

private:
  friend class MetadataBuilder;
  Expected<const Value *> required(std::string_view key,
                                   std::string_view kind) const;
  Error mismatch(std::string_view key, std::string_view kind,
                 const Value &got) const;

  std::string file;
  std::vector<Entry> list;
  std::unordered_map<std::string_view, size_t> index;
};

struct Contents {
  Metadata metadata;
  /// In the order of the file; they point into its mapping.
  std::vector<TensorInfo> tensors;
  /// general.alignment, 32 when absent.
  uint32_t alignment = 32;
};

Expected<Contents> read(const MappedFile &file);

} // namespace gptc::checkpoint::gguf

#endif // GPTC_CHECKPOINT_GGUF_H
