//===- TemplateValue.h - Values of a chat template ------------------------===//
//
// Immutable and shared, but for namespaces, which nothing may contain: so no
// value contains itself. Messages and other mappings are dicts in the order of
// their keys' first setting.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_LIB_RUNTIME_TEXT_TEMPLATEVALUE_H
#define GPTC_LIB_RUNTIME_TEXT_TEMPLATEVALUE_H

#include "TemplateText.h"
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace gptc::text::chat {

struct Value;
using List = std::vector<Value>;
using Dict = std::vector<std::pair<std::string, Value>>;

struct Undefined {
  std::string name; ///< for messages
};
struct Namespace {
  Dict members;
};

struct Value {
  std::variant<Undefined, std::nullptr_t, bool, int64_t,
               std::shared_ptr<const Text>, std::shared_ptr<const List>,
               std::shared_ptr<const Dict>, std::shared_ptr<Namespace>>
      data;
  /// How deep lists and dicts lie in one another; what copies or destroys them
  /// recurses so far.
  unsigned nesting = 0;

  Value() = default;
  explicit Value(Undefined undefined) : data(std::move(undefined)) {}
  explicit Value(std::nullptr_t) : data(nullptr) {}
  explicit Value(bool value) : data(value) {}
  explicit Value(int64_t value) : data(value) {}
  explicit Value(Text text)
      : data(std::make_shared<const Text>(std::move(text))) {}
  explicit Value(List list);
  explicit Value(Dict dict);

  const Undefined *undefined() const { return std::get_if<Undefined>(&data); }
  bool isNone() const { return std::holds_alternative<std::nullptr_t>(data); }
  const bool *boolean() const { return std::get_if<bool>(&data); }
  /// A number, which a boolean is too, as in Python.
  std::optional<int64_t> integer() const {
    if (const bool *value = boolean())
      return *value;
    const int64_t *value = std::get_if<int64_t>(&data);
    return value ? std::optional(*value) : std::nullopt;
  }
  const Text *text() const { return shared<const Text>(); }
  const List *list() const { return shared<const List>(); }
  const Dict *dict() const { return shared<const Dict>(); }
  Namespace *space() const { return shared<Namespace>(); }

private:
  template <typename T> T *shared() const {
    auto *pointer = std::get_if<std::shared_ptr<T>>(&data);
    return pointer ? pointer->get() : nullptr;
  }
};

inline Value::Value(List list) {
  for (const Value &item : list)
    nesting = std::max(nesting, item.nesting + 1);
  data = std::make_shared<const List>(std::move(list));
}
inline Value::Value(Dict dict) {
  for (const auto &member : dict)
    nesting = std::max(nesting, member.second.nesting + 1);
  data = std::make_shared<const Dict>(std::move(dict));
}

/// "a string", "a list", ..., for messages.
std::string_view kindName(const Value &value);

bool isTrue(const Value &value);

/// A string of more bytes is not taken apart into characters, each of which is
/// a value.
constexpr size_t mostCharacters = 1 << 16;

/// Items of a list, characters of a string, keys of a dict, nothing of what is
/// undefined. False for other values.
bool itemsOf(const Value &value, List &items);

/// Where each character starts, and the end.
std::vector<size_t> characterStarts(std::string_view bytes);

/// The member of a dict or namespace, or null.
const Value *memberOf(const Value &value, std::string_view name);

} // namespace gptc::text::chat

#endif // GPTC_LIB_RUNTIME_TEXT_TEMPLATEVALUE_H
