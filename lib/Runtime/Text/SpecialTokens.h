//===- SpecialTokens.h - Finding special tokens in text -------------------===//
//
// The control and user-defined tokens. Finds the leftmost match, the longest
// one there, with the white space that belongs to it.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_LIB_RUNTIME_TEXT_SPECIALTOKENS_H
#define GPTC_LIB_RUNTIME_TEXT_SPECIALTOKENS_H

#include "PrefixTable.h"

namespace gptc::text {

class SpecialTokens {
public:
  /// The first of two tokens with equal bytes counts; empty ones are left out.
  /// `data` must outlive it.
  explicit SpecialTokens(const TokenizerData &data);

  struct Match {
    size_t start, length;
    int32_t id; ///< -1: no match, `start` is the end of the text
  };
  /// The first match at or after `from`. Control tokens are found where
  /// `parsedUpTo(start)` gives at least the end of the token: up to there the
  /// text may be read as more than plain text.
  template <typename ParsedUpTo>
  Match find(std::string_view text, size_t from, ParsedUpTo parsedUpTo) const {
    Match longest{text.size(), 0, -1};
    for (size_t start = from; start < text.size() && longest.id == -1; ++start)
      table.forEachPrefix(text.substr(start), [&](size_t length, int32_t id) {
        if (data.kinds[id] != TokenKind::Control ||
            start + length <= parsedUpTo(start))
          longest = {start, length, id};
      });
    return longest.id == -1 ? longest : withSpace(longest, text, from);
  }

private:
  Match withSpace(Match match, std::string_view text, size_t from) const;

  const TokenizerData &data;
  PrefixTable table;
};

} // namespace gptc::text

#endif // GPTC_LIB_RUNTIME_TEXT_SPECIALTOKENS_H
