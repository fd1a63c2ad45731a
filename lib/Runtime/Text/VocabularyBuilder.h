//===- VocabularyBuilder.h - Tokens and merges as files write them --------===//
//
// Shared by the importers: undoes the writing of tokens and turns merges
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
  /// How the file writes normal tokens: in GPT-2's byte alphabet, or as
  /// SentencePiece does, U+2581 standing for a space.
  enum class Writing {
    ByteAlphabet,
    SentencePiece
  } writing = Writing::ByteAlphabet;

  /// Sets token `id`, growing the vocabulary; ids left out become Unused. The
  /// view must live as long as the builder. A Normal token that no text can
  /// reach (characters outside the byte alphabet; a space as itself) keeps its
  /// text and becomes Unused.
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

  /// Makes token `id` swallow white space beside it (stripLeft, stripRight).
  void setStrip(int64_t id, uint8_t bits);

  TokenizerData data;

private:
  std::unordered_map<std::string_view, uint32_t> idOf; ///< by writing
};

/// "<0x0A>" -> 0x0A.
std::optional<uint8_t> byteTokenValue(std::string_view written);

/// `text` with U+2581 as spaces.
std::string withMarksAsSpaces(std::string_view text);

} // namespace gptc::text

#endif // GPTC_LIB_RUNTIME_TEXT_VOCABULARYBUILDER_H
