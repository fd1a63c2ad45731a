//===- PrefixTable.h - Tokens that text starts with -----------------------===//
//
// Token ids in the order of their bytes. The tokens that share their first k
// bytes with a text are neighbours, so each further byte narrows a range: O(m
// log V) for a longest common prefix of m bytes, four bytes of memory a token.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_LIB_RUNTIME_TEXT_PREFIXTABLE_H
#define GPTC_LIB_RUNTIME_TEXT_PREFIXTABLE_H

#include "gptc/Runtime/Text/TokenizerData.h"
#include <algorithm>

namespace gptc::text {

class PrefixTable {
public:
  /// `ids` of tokens; empty ones are left out, and of equal ones the lowest id
  /// counts. `tokens` must outlive the table.
  PrefixTable(const std::vector<std::string> &tokens, std::vector<int32_t> ids)
      : tokens(tokens), sorted(std::move(ids)) {
    std::erase_if(sorted, [&](int32_t id) { return tokens[id].empty(); });
    std::ranges::sort(sorted, [&](int32_t a, int32_t b) {
      int order = tokens[a].compare(tokens[b]);
      return order ? order < 0 : a < b;
    });
    auto bytes = [&](int32_t id) -> const std::string & { return tokens[id]; };
    auto repeated = std::ranges::unique(sorted, {}, bytes);
    sorted.erase(repeated.begin(), repeated.end());
    // The range of each first byte, which most searches end at.
    size_t at = 0;
    for (size_t byte = 0; byte < 256; ++byte) {
      while (at < sorted.size() && uint8_t(tokens[sorted[at]][0]) < byte)
        ++at;
      starts[byte] = uint32_t(at);
    }
    starts[256] = uint32_t(sorted.size());
  }

  /// Calls `match(length, id)` for each token that `text` starts with, the
  /// shortest first.
  template <typename Callback>
  void forEachPrefix(std::string_view text, Callback match) const {
    if (text.empty())
      return;
    auto first = sorted.begin() + starts[uint8_t(text[0])];
    auto last = sorted.begin() + starts[uint8_t(text[0]) + 1];
    for (size_t k = 1; first != last; ++k) {
      if (tokens[*first].size() == k)
        match(k, *first);
      if (k == text.size())
        return;
      // Shorter ones come first; bytes are ordered as unsigned, as in strings.
      auto byteAt = [&](int32_t id) {
        return k < tokens[id].size() ? int(uint8_t(tokens[id][k])) : -1;
      };
      auto range = std::ranges::equal_range(first, last, int(uint8_t(text[k])),
                                            {}, byteAt);
      first = range.begin();
      last = range.end();
    }
  }

private:
  const std::vector<std::string> &tokens;
  std::vector<int32_t> sorted;
  uint32_t starts[257];
};

} // namespace gptc::text

#endif // GPTC_LIB_RUNTIME_TEXT_PREFIXTABLE_H
