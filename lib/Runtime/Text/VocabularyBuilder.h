//===- VocabularyBuilder.h - Tokens and merges as files write them --------===//
//
// Shared by the importers: undoes the byte-to-unicode table and turns merges
// written as two strings into token ids.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_LIB_RUNTIME_TEXT_VOCABULARYBUILDER_H
#define GPTC_LIB_RUNTIME_TEXT_VOCABULARYBUILDER_H

#include "gptc/Runtime/Text/TokenizerData.h"
#include <unordered_map>

namespace gptc::text {

class VocabularyBuilder {
public:
  /// Sets token `id`, growing the vocabulary; ids left out become Unused. The
  /// view must live as long as the builder. A Normal token with characters
  /// outside the byte alphabet keeps its text and becomes Unused: byte-level
  /// encoding cannot reach it.
  bool setToken(int64_t id, std::string_view written, TokenKind kind,
                std::string &error);

  /// Adds the merge of next rank, in the writing of the file.
  bool addMerge(std::string_view left, std::string_view right,
                std::string &error);
  /// The same for "left right".
  bool addMerge(std::string_view pair, std::string &error);

  /// Adds well-known end-of-turn tokens to extraEnds, validates, and gives the
  /// data out.
  std::optional<TokenizerData> finish(std::string &error);

  TokenizerData data;

private:
  std::unordered_map<std::string_view, uint32_t> idOf; ///< by writing
};

} // namespace gptc::text

#endif // GPTC_LIB_RUNTIME_TEXT_VOCABULARYBUILDER_H
