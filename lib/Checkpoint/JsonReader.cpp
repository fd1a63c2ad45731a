//===- JsonReader.cpp - Typed reads from a JSON object --------------------===//

#include "gptc/Checkpoint/Json.h"
#include <fmt/format.h>

using namespace gptc::checkpoint;
using namespace gptc::checkpoint::json;

const Value *Value::find(std::string_view key) const {
  if (const Object *object = asObject())
    for (const Member &member : *object)
      if (member.key == key)
        return &member.value;
  return nullptr;
}

std::string Value::describe() const {
  if (const bool *value = asBool())
    return *value ? "true" : "false";
  if (const int64_t *value = asInt())
    return fmt::format("integer {}", *value);
  if (const uint64_t *value = asBigUint())
    return fmt::format("integer {}", *value);
  if (const double *value = asDouble())
    return fmt::format("number {}", *value);
  if (const std::string *value = asString())
    return fmt::format("string {}", quote(*value));
  if (const Array *value = asArray())
    return fmt::format("array of {} values", value->size());
  if (const Object *value = asObject())
    return fmt::format("object of {} members", value->size());
  return "null";
}

Reader::Reader(const Value &object, std::string where, std::string prefix)
    : object(&object), file(std::move(where)), prefix(std::move(prefix)) {}

bool Reader::has(std::string_view key) const {
  const Value *value = object->find(key);
  return value && !value->isNull();
}

Error Reader::error(std::string_view key, std::string_view rule) const {
  return Error{fmt::format("{}: key {}: {}", file,
                           quote(prefix + std::string(key)), rule)};
}

Expected<const Value *> Reader::required(std::string_view key,
                                         std::string_view kind) const {
  if (const Value *value = object->find(key))
    return value;
  return error(key, fmt::format("expected {}, got no such key", kind));
}

Error Reader::mismatch(std::string_view key, std::string_view kind,
                       const Value &got) const {
  return error(key, fmt::format("expected {}, got {}", kind, got.describe()));
}

Expected<int64_t> Reader::integer(std::string_view key) const {
  auto value = required(key, "an integer");
  if (!value)
    return value.error();
  if (const int64_t *integer = (*value)->asInt())
    return *integer;
  return mismatch(key, "an integer", **value);
}

Expected<int64_t> Reader::integerOr(std::string_view key,
                                    int64_t absent) const {
  return has(key) ? integer(key) : Expected<int64_t>(absent);
}

Expected<double> Reader::real(std::string_view key) const {
  auto value = required(key, "a number");
  if (!value)
    return value.error();
  if (const double *number = (*value)->asDouble())
    return *number;
  if (const int64_t *integer = (*value)->asInt())
    return static_cast<double>(*integer);
  if (const uint64_t *integer = (*value)->asBigUint())
    return static_cast<double>(*integer);
  return mismatch(key, "a number", **value);
}

Expected<double> Reader::realOr(std::string_view key, double absent) const {
  return has(key) ? real(key) : Expected<double>(absent);
}

Expected<std::string> Reader::string(std::string_view key) const {
  auto value = required(key, "a string");
  if (!value)
    return value.error();
  if (const std::string *text = (*value)->asString())
    return *text;
  return mismatch(key, "a string", **value);
}

Expected<std::string> Reader::stringOr(std::string_view key,
                                       std::string_view absent) const {
  return has(key) ? string(key) : Expected<std::string>(std::string(absent));
}

Expected<bool> Reader::boolean(std::string_view key) const {
  auto value = required(key, "true or false");
  if (!value)
    return value.error();
  if (const bool *flag = (*value)->asBool())
    return *flag;
  return mismatch(key, "true or false", **value);
}

Expected<bool> Reader::booleanOr(std::string_view key, bool absent) const {
  return has(key) ? boolean(key) : Expected<bool>(absent);
}

Expected<const Array *> Reader::array(std::string_view key) const {
  auto value = required(key, "an array");
  if (!value)
    return value.error();
  if (const Array *elements = std::as_const(**value).asArray())
    return elements;
  return mismatch(key, "an array", **value);
}

Expected<Reader> Reader::child(std::string_view key) const {
  auto value = required(key, "an object");
  if (!value)
    return value.error();
  if (!std::as_const(**value).asObject())
    return mismatch(key, "an object", **value);
  return Reader(**value, file, prefix + std::string(key) + ".");
}
