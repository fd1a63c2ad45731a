//===- TemplateValue.h - Values of a chat template ------------------------===//
//
// Immutable and shared, but for namespaces, which nothing may contain: so no
// value contains itself. Messages and other mappings are dicts in the order of
// their keys' first setting.
//
// Copying a Value takes a fixed time; lists and dicts can only be copied item
// by item. What takes a Work spends first, as in TemplateText.h.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_LIB_RUNTIME_TEXT_TEMPLATEVALUE_H
#define GPTC_LIB_RUNTIME_TEXT_TEMPLATEVALUE_H

#include "TemplateText.h"
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace gptc::text::chat {

class List;
class Dict;
struct Namespace;

struct Undefined {
  Undefined() = default;
  explicit Undefined(std::string_view name) : name(name.substr(0, 100)) {}
  std::string name; ///< for messages
};

struct Value {
  std::variant<Undefined, std::nullptr_t, bool, int64_t,
               std::shared_ptr<const Text>, std::shared_ptr<const List>,
               std::shared_ptr<const Dict>, std::shared_ptr<Namespace>>
      data;
  /// How deep lists and dicts lie in one another; what destroys or compares
  /// them recurses so far.
  unsigned nesting = 0;

  Value() = default;
  explicit Value(Undefined undefined) : data(std::move(undefined)) {}
  explicit Value(std::nullptr_t) : data(nullptr) {}
  explicit Value(bool value) : data(value) {}
  explicit Value(int64_t value) : data(value) {}
  Value(Work &work, Text text);
  Value(Work &work, List list);
  Value(Work &work, Dict dict);

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

class List {
public:
  List() = default;
  List(List &&) noexcept = default;
  List &operator=(List &&) noexcept = default;

  void push(Work &work, Value value);
  size_t size() const { return items.size(); }
  bool empty() const { return items.empty(); }
  const Value &operator[](size_t i) const { return items[i]; }
  auto begin() const { return items.begin(); }
  auto end() const { return items.end(); }
  unsigned nesting() const { return depth; }

private:
  std::vector<Value> items;
  unsigned depth = 0;
};

class Dict {
public:
  Dict() = default;
  Dict(Dict &&) noexcept = default;
  Dict &operator=(Dict &&) noexcept = default;

  /// The member, or null. In time linear in the number of members, which
  /// templates keep small.
  const Value *find(Work &work, std::string_view name) const;
  void set(Work &work, std::string_view name, Value value);
  /// Where there is no member of this name.
  void add(Work &work, std::string_view name, Value value);
  void clear() { members.clear(); }
  size_t size() const { return members.size(); }
  bool empty() const { return members.empty(); }
  auto begin() const { return members.begin(); }
  auto end() const { return members.end(); }
  unsigned nesting() const { return depth; }

private:
  /// The member's place, or size().
  size_t placeOf(Work &work, std::string_view name) const;

  std::vector<std::pair<std::string, Value>> members;
  unsigned depth = 0;
};

struct Namespace {
  Dict members;
};

/// "a string", "a list", ..., for messages.
std::string_view kindName(const Value &value);

bool isTrue(const Value &value);

/// A string of more bytes is not taken apart into characters, each of which is
/// a value.
constexpr size_t mostCharacters = 1 << 16;

/// Items of a list, characters of a string, keys of a dict, nothing of what is
/// undefined. False for other values.
bool itemsOf(Work &work, const Value &value, List &items);
/// What itemsOf cannot take apart, for messages.
std::string describeItems(const Value &value);
/// How many those are, of strings of any length; empty for other values.
std::optional<size_t> countItems(Work &work, const Value &value);

/// The member of a dict or namespace, or null.
const Value *memberOf(Work &work, const Value &value, std::string_view name);

/// Python's ==, by which a boolean is a number.
bool equal(Work &work, const Value &left, const Value &right);

} // namespace gptc::text::chat

#endif // GPTC_LIB_RUNTIME_TEXT_TEMPLATEVALUE_H
