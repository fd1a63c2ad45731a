//===- GgufReads.cpp - Typed reads of GGUF metadata -----------------------===//

#include "gptc/Checkpoint/Gguf.h"
#include <fmt/format.h>

using namespace gptc::checkpoint;
using namespace gptc::checkpoint::gguf;

std::string_view gguf::valueTypeName(ValueType type) {
  static constexpr std::string_view names[] = {
      "uint8", "int8",   "uint16", "int16",  "uint32", "int32",  "float32",
      "bool",  "string", "array",  "uint64", "int64",  "float64"};
  return names[static_cast<size_t>(type)];
}

std::string Value::describe() const {
  if (const bool *value = std::get_if<bool>(&data))
    return *value ? "true" : "false";
  if (const std::string_view *text = std::get_if<std::string_view>(&data))
    return fmt::format("string {}", quote(*text));
  if (const Array *array = std::get_if<Array>(&data))
    return fmt::format("array of {} {}", array->count,
                       valueTypeName(array->type));
  std::string_view name = valueTypeName(type);
  if (const int64_t *value = std::get_if<int64_t>(&data))
    return fmt::format("{} {}", name, *value);
  if (const uint64_t *value = std::get_if<uint64_t>(&data))
    return fmt::format("{} {}", name, *value);
  return fmt::format("{} {}", name, std::get<double>(data));
}

const Value *Metadata::find(std::string_view key) const {
  auto found = index.find(key);
  return found == index.end() ? nullptr : &list[found->second].value;
}

Error Metadata::error(std::string_view key, std::string_view rule) const {
  return Error{fmt::format("{}: key {}: {}", file, quote(key), rule)};
}

Expected<const Value *> Metadata::required(std::string_view key,
                                           std::string_view kind) const {
  if (const Value *value = find(key))
    return value;
  return error(key, fmt::format("expected {}, got no such key", kind));
}

Error Metadata::mismatch(std::string_view key, std::string_view kind,
                         const Value &got) const {
  return error(key, fmt::format("expected {}, got {}", kind, got.describe()));
}

Expected<int64_t> Metadata::integer(std::string_view key) const {
  auto value = required(key, "an integer");
  if (!value)
    return value.error();
  if (const int64_t *number = std::get_if<int64_t>(&(*value)->data))
    return *number;
  const uint64_t *number = std::get_if<uint64_t>(&(*value)->data);
  if (number && *number <= static_cast<uint64_t>(INT64_MAX))
    return static_cast<int64_t>(*number);
  return mismatch(key, "an integer", **value);
}

Expected<int64_t> Metadata::integerOr(std::string_view key,
                                      int64_t absent) const {
  return has(key) ? integer(key) : Expected<int64_t>(absent);
}

Expected<double> Metadata::real(std::string_view key) const {
  auto value = required(key, "a number");
  if (!value)
    return value.error();
  if (const double *number = std::get_if<double>(&(*value)->data))
    return *number;
  if (const int64_t *number = std::get_if<int64_t>(&(*value)->data))
    return static_cast<double>(*number);
  if (const uint64_t *number = std::get_if<uint64_t>(&(*value)->data))
    return static_cast<double>(*number);
  return mismatch(key, "a number", **value);
}

Expected<double> Metadata::realOr(std::string_view key, double absent) const {
  return has(key) ? real(key) : Expected<double>(absent);
}

Expected<std::string> Metadata::string(std::string_view key) const {
  auto value = required(key, "a string");
  if (!value)
    return value.error();
  if (const auto *text = std::get_if<std::string_view>(&(*value)->data))
    return std::string(*text);
  return mismatch(key, "a string", **value);
}

Expected<std::string> Metadata::stringOr(std::string_view key,
                                         std::string_view absent) const {
  return has(key) ? string(key) : Expected<std::string>(std::string(absent));
}

Expected<bool> Metadata::boolean(std::string_view key) const {
  auto value = required(key, "a bool");
  if (!value)
    return value.error();
  if (const bool *flag = std::get_if<bool>(&(*value)->data))
    return *flag;
  return mismatch(key, "a bool", **value);
}

Expected<bool> Metadata::booleanOr(std::string_view key, bool absent) const {
  return has(key) ? boolean(key) : Expected<bool>(absent);
}

Expected<const Array *> Metadata::array(std::string_view key) const {
  auto value = required(key, "an array");
  if (!value)
    return value.error();
  if (const Array *elements = std::get_if<Array>(&(*value)->data))
    return elements;
  return mismatch(key, "an array", **value);
}

Expected<const Array *> Metadata::strings(std::string_view key) const {
  auto value = required(key, "an array of strings");
  if (!value)
    return value.error();
  const Array *elements = std::get_if<Array>(&(*value)->data);
  if (elements && elements->type == ValueType::String)
    return elements;
  return mismatch(key, "an array of strings", **value);
}
