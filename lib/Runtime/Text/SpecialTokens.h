//===- SpecialTokens.h - Finding special tokens in text -------------------===//
//
// A byte trie over the control and user-defined tokens. Finds the leftmost
// match, the longest one there.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_LIB_RUNTIME_TEXT_SPECIALTOKENS_H
#define GPTC_LIB_RUNTIME_TEXT_SPECIALTOKENS_H

#include "gptc/Runtime/Text/TokenizerData.h"
#include <map>

namespace gptc::text {

class SpecialTokens {
public:
  /// The first of two tokens with equal bytes counts; empty ones are left out.
  explicit SpecialTokens(const TokenizerData &data);

  struct Match {
    size_t start, length;
    int32_t id; ///< -1: no match, `start` is the end of the text
  };
  /// The first match at or after `from`; control tokens only on request.
  Match find(std::string_view text, size_t from, bool control) const;

private:
  struct Node {
    int32_t id = -1;
    bool control = false;
    std::map<uint8_t, uint32_t> children;
  };
  std::vector<Node> nodes;
  bool anyUserDefined = false;
};

} // namespace gptc::text

#endif // GPTC_LIB_RUNTIME_TEXT_SPECIALTOKENS_H
