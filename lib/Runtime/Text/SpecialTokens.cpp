//===- SpecialTokens.cpp - Finding special tokens in text -----------------===//
#include "SpecialTokens.h"

namespace gptc::text {

SpecialTokens::SpecialTokens(const TokenizerData &data) : nodes(1) {
  for (size_t id = 0; id < data.tokens.size(); ++id) {
    bool control = data.kinds[id] == TokenKind::Control;
    bool userDefined = data.kinds[id] == TokenKind::UserDefined;
    if ((!control && !userDefined) || data.tokens[id].empty())
      continue;
    anyUserDefined |= userDefined;
    uint32_t at = 0;
    for (char c : data.tokens[id]) {
      auto [child, isNew] =
          nodes[at].children.try_emplace(uint8_t(c), uint32_t(nodes.size()));
      at = child->second;
      if (isNew)
        nodes.emplace_back();
    }
    if (nodes[at].id == -1) {
      nodes[at].id = int32_t(id);
      nodes[at].control = control;
    }
  }
}

SpecialTokens::Match SpecialTokens::find(std::string_view text, size_t from,
                                         bool control) const {
  if (!control && !anyUserDefined)
    return {text.size(), 0, -1};
  for (size_t start = from; start < text.size(); ++start) {
    Match longest{start, 0, -1};
    uint32_t at = 0;
    for (size_t i = start; i < text.size(); ++i) {
      auto child = nodes[at].children.find(uint8_t(text[i]));
      if (child == nodes[at].children.end())
        break;
      at = child->second;
      if (nodes[at].id != -1 && (control || !nodes[at].control))
        longest = {start, i + 1 - start, nodes[at].id};
    }
    if (longest.id != -1)
      return longest;
  }
  return {text.size(), 0, -1};
}

} // namespace gptc::text
