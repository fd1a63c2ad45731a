//===- Json.h - JSON files from outside -------------------------*- C++ -*-===//
//
// Reads config.json, a safetensors header or a shard index into a small tree.
// Refuses duplicate keys, nesting deeper than 64, more than 2^19 values and
// strings or numbers of more than 8 MB (so that a hostile file cannot ask for
// gigabytes), invalid UTF-8, numbers out of range, and anything after the
// value.
//
//===----------------------------------------------------------------------===//

#ifndef GPTC_CHECKPOINT_JSON_H
#define GPTC_CHECKPOINT_JSON_H

#include "gptc/Checkpoint/Error.h"
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace gptc::checkpoint::json {

class Value;
using Array = std::vector<Value>;

/// A key with its value; members keep the order of the file.
struct Member;
using Object = std::vector<Member>;

class Value {
public:
  Value() = default;
  template <typename T>
  explicit Value(T value) : data(std::in_place_type<T>, std::move(value)) {}

  bool isNull() const { return std::holds_alternative<std::monostate>(data); }
  /// Null when the value is of another kind.
  const bool *asBool() const { return std::get_if<bool>(&data); }
  /// Integers without fraction or exponent that fit in int64.
  const int64_t *asInt() const { return std::get_if<int64_t>(&data); }
  /// Integers above the int64 range.
  const uint64_t *asBigUint() const { return std::get_if<uint64_t>(&data); }
  /// Numbers written with a fraction or an exponent.
  const double *asDouble() const { return std::get_if<double>(&data); }
  const std::string *asString() const {
    return std::get_if<std::string>(&data);
  }
  const Array *asArray() const { return std::get_if<Array>(&data); }
  const Object *asObject() const { return std::get_if<Object>(&data); }
  Array *asArray() { return std::get_if<Array>(&data); }
  Object *asObject() { return std::get_if<Object>(&data); }

  /// The member of an object; null when absent or when this is no object.
  /// Linear in the number of members.
  const Value *find(std::string_view key) const;

  /// For messages: "string 'gelu'", "integer 3", "array of 4 values", "null".
  std::string describe() const;

private:
  std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string,
               Array, Object>
      data;
};

struct Member {
  std::string key;
  Value value;
};

/// Parses the whole of `text`. `where` (a path) begins every message.
Expected<Value> parse(std::string_view text, std::string_view where);

/// Maps and parses a file.
Expected<Value> parseFile(const std::string &path);

/// Typed reads from an object. A message names the file, the key with its path
/// ('rope_scaling.factor'), the expected kind and what was there. The `...Or`
/// forms give the default when the key is absent or null, never when it has
/// another kind. Refers to the value, which must outlive it.
class Reader {
public:
  /// `where` is the path of the file. A value that is no object reads as one
  /// without members.
  Reader(const Value &object, std::string where, std::string prefix = {});

  const Value &value() const { return *object; }
  const std::string &where() const { return file; }
  bool has(std::string_view key) const;

  Expected<int64_t> integer(std::string_view key) const;
  Expected<int64_t> integerOr(std::string_view key, int64_t absent) const;
  /// Integers are accepted as reals.
  Expected<double> real(std::string_view key) const;
  Expected<double> realOr(std::string_view key, double absent) const;
  Expected<std::string> string(std::string_view key) const;
  Expected<std::string> stringOr(std::string_view key,
                                 std::string_view absent) const;
  Expected<bool> boolean(std::string_view key) const;
  Expected<bool> booleanOr(std::string_view key, bool absent) const;
  Expected<const Array *> array(std::string_view key) const;
  Expected<Reader> child(std::string_view key) const;

  /// "<file>: key '<path>': <rule>", for checks made by the caller.
  Error error(std::string_view key, std::string_view rule) const;

private:
  Expected<const Value *> required(std::string_view key,
                                   std::string_view kind) const;
  Error mismatch(std::string_view key, std::string_view kind,
                 const Value &got) const;

  const Value *object;
  std::string file;
  std::string prefix;
};

} // namespace gptc::checkpoint::json

#endif // GPTC_CHECKPOINT_JSON_H
