//===- TemplateValue.cpp - Values of a chat template ----------------------===//
#include "TemplateValue.h"
#include "Utf8.h"
#include <algorithm>

namespace gptc::text::chat {

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
    return !value.text()->bytes.empty();
  if (value.list())
    return !value.list()->empty();
  if (value.dict())
    return !value.dict()->empty();
  return value.space() != nullptr;
}

std::vector<size_t> characterStarts(std::string_view bytes) {
  std::vector<size_t> starts;
  for (size_t at = 0; at < bytes.size();) {
    starts.push_back(at);
    at += std::max<size_t>(utf8Prefix(bytes.substr(at)).length, 1);
  }
  starts.push_back(bytes.size());
  return starts;
}

bool itemsOf(const Value &value, List &items) {
  if (const List *list = value.list()) {
    items = *list;
  } else if (const Text *text = value.text();
             text && text->bytes.size() <= mostCharacters) {
    auto starts = characterStarts(text->bytes);
    for (size_t i = 0; i + 1 < starts.size(); ++i)
      items.emplace_back(text->slice(starts[i], starts[i + 1] - starts[i]));
  } else if (const Dict *dict = value.dict()) {
    for (const auto &member : *dict)
      items.emplace_back(Text(member.first, false));
  } else {
    return value.undefined();
  }
  return true;
}

const Value *memberOf(const Value &value, std::string_view name) {
  const Dict *members = value.space() ? &value.space()->members : value.dict();
  if (members)
    for (const auto &[key, member] : *members)
      if (key == name)
        return &member;
  return nullptr;
}

} // namespace gptc::text::chat
