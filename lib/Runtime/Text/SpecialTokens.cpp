//===- SpecialTokens.cpp - Finding special tokens in text -----------------===//
#include "SpecialTokens.h"
#include "Unicode.h"

namespace gptc::text {

static std::vector<int32_t> specialIds(const TokenizerData &data) {
  std::vector<int32_t> ids;
  for (size_t id = 0; id < data.tokens.size(); ++id)
    if (data.kinds[id] == TokenKind::Control ||
        data.kinds[id] == TokenKind::UserDefined)
      ids.push_back(int32_t(id));
  return ids;
}

SpecialTokens::SpecialTokens(const TokenizerData &data)
    : data(data), table(data.tokens, specialIds(data)) {}

SpecialTokens::Match SpecialTokens::withSpace(Match match,
                                              std::string_view text,
                                              size_t from) const {
  uint8_t strip = data.strips.empty() ? 0 : data.strips[match.id];
  size_t start = match.start, end = match.start + match.length;
  if (strip & stripLeft)
    start = from + trimRight(text.substr(from, start - from)).size();
  if (strip & stripRight)
    end = text.size() - trimLeft(text.substr(end)).size();
  return {start, end - start, match.id};
}

} // namespace gptc::text
