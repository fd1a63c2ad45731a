//===- TemplateValue.cpp - Values of a chat template ----------------------===//
#include "TemplateValue.h"
#include <algorithm>

namespace gptc::text::chat {

/// Of an object of its own, with what an allocator adds.
template <typename T> static constexpr uint64_t objectCost = sizeof(T) + 32;

Value::Value(Work &work, Text text) {
  if (work.spend(objectCost<Text>))
    data = std::make_shared<const Text>(std::move(text));
}
Value::Value(Work &work, List list) : nesting(list.nesting()) {
  if (work.spend(objectCost<List>))
    data = std::make_shared<const List>(std::move(list));
}
Value::Value(Work &work, Dict dict) : nesting(dict.nesting()) {
  if (work.spend(objectCost<Dict>))
    data = std::make_shared<const Dict>(std::move(dict));
}

void List::push(Work &work, Value value) {
  if (!work.spend(sizeof(Value)))
    return;
  depth = std::max(depth, value.nesting + 1);
  items.push_back(std::move(value));
}

size_t Dict::placeOf(Work &work, std::string_view name) const {
  if (!work.spend(1 + size() / 8))
    return size();
  for (size_t i = 0; i < size(); ++i) {
    std::string_view key = members[i].first;
    if (key.size() != name.size())
      continue;
    if (!work.spend(name.size() / 16))
      return size();
    if (key == name)
      return i;
  }
  return size();
}

const Value *Dict::find(Work &work, std::string_view name) const {
  size_t place = placeOf(work, name);
  return place < size() ? &members[place].second : nullptr;
}

void Dict::set(Work &work, std::string_view name, Value value) {
  size_t place = placeOf(work, name);
  if (place == size())
    return add(work, name, std::move(value));
  depth = std::max(depth, value.nesting + 1);
  members[place].second = std::move(value);
}

void Dict::add(Work &work, std::string_view name, Value value) {
  if (!work.spend(sizeof(members[0]) + name.size()))
    return;
  depth = std::max(depth, value.nesting + 1);
  members.emplace_back(name, std::move(value));
}

std::string_view kindName(const Value &value) {
  static constexpr std::string_view names[] = {
      "an undefined value", "none",   "a boolean", "a number",
      "a string",           "a list", "a dict",    "a namespace"};
  return names[value.data.index()];
}

bool isTrue(const Value &value) {
  if (auto number = value.integer())
    return *number != 0;
  if (value.text())
    return !value.text()->empty();
  if (value.list())
    return !value.list()->empty();
  if (value.dict())
    return !value.dict()->empty();
  return value.space() != nullptr;
}

bool itemsOf(Work &work, const Value &value, List &items) {
  if (const List *list = value.list()) {
    for (const Value &item : *list)
      items.push(work, item);
  } else if (const Text *text = value.text();
             text && text->size() <= mostCharacters) {
    auto starts = text->characterStarts(work);
    for (size_t i = 0; i + 1 < starts.size() && !work.failed(); ++i)
      items.push(work, Value(work, text->slice(work, starts[i],
                                               starts[i + 1] - starts[i])));
  } else if (const Dict *dict = value.dict()) {
    for (const auto &member : *dict)
      items.push(work, Value(work, Text(work, member.first, false)));
  } else {
    return value.undefined();
  }
  return true;
}

std::string describeItems(const Value &value) {
  return value.text()
             ? fmt::format("a string of {} bytes, where at most {} are taken "
                           "apart",
                           value.text()->size(), mostCharacters)
             : std::string(kindName(value));
}

std::optional<size_t> countItems(Work &work, const Value &value) {
  if (value.text())
    return value.text()->characterCount(work);
  if (value.list())
    return value.list()->size();
  if (value.dict())
    return value.dict()->size();
  return value.undefined() ? std::optional<size_t>(0) : std::nullopt;
}

const Value *memberOf(Work &work, const Value &value, std::string_view name) {
  const Dict *members = value.space() ? &value.space()->members : value.dict();
  return members ? members->find(work, name) : nullptr;
}

/// Lists that hold one list many times over are compared as often: each pair
/// counts.
bool equal(Work &work, const Value &left, const Value &right) {
  if (!work.spend(1))
    return false;
  if (left.integer() && right.integer())
    return *left.integer() == *right.integer();
  if (left.text() && right.text())
    return left.text()->equals(work, *right.text());
  if (const List *a = left.list(), *b = right.list(); a && b)
    return std::ranges::equal(*a, *b, [&](const Value &x, const Value &y) {
      return equal(work, x, y);
    });
  if (const Dict *a = left.dict(), *b = right.dict(); a && b)
    return a->size() == b->size() &&
           std::ranges::all_of(*a, [&](const auto &member) {
             const Value *other = b->find(work, member.first);
             return other && equal(work, member.second, *other);
           });
  if (left.space() || right.space())
    return left.space() == right.space();
  return left.data.index() == right.data.index() &&
         (left.isNone() || left.undefined());
}

} // namespace gptc::text::chat
