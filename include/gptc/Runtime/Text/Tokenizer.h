//===- Tokenizer.h - Text to token ids and back ---------------------------===//
//
// Encoding: special tokens are cut out first (leftmost, longest), and each
// section between them is encoded by the model of TokenizerData:
//   bpe                cut into pieces by the pre-tokenizer's pattern, each
//                      merged from its bytes by rank (lowest first, leftmost on
//                      ties), as Hugging Face's `tokenizers` does. Sennrich et
//                      al., arXiv:1508.07909, on bytes as in GPT-2
//   sentencepiece-bpe  merged from its characters by rank or score
//   unigram            the likeliest of all cuts (Viterbi)
// O(n log n) in the length of a piece, no recursion on it.
//
// Input need not be valid UTF-8: each invalid byte counts as a symbol
// character. Refuses: what the vocabulary has no token for (the error names
// it), more than 512 MiB. A Tokenizer is immutable and may be used by several
// threads.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_RUNTIME_TEXT_TOKENIZER_H
#define GPTC_RUNTIME_TEXT_TOKENIZER_H

#include "gptc/Runtime/Text/TokenizerData.h"
#include <memory>

namespace gptc::text {

/// Text that is read as a whole, in parts. A special token written across
/// parts counts as control token only if all of them may have such.
struct TextPart {
  std::string_view bytes;
  bool parseSpecial; ///< as in Tokenizer::encode
};

class Tokenizer {
public:
  /// Takes the data over; empty with a message if validate() refuses it.
  static std::optional<Tokenizer> create(TokenizerData data,
                                         std::string &error);

  Tokenizer(Tokenizer &&) noexcept;
  Tokenizer &operator=(Tokenizer &&) noexcept;
  ~Tokenizer();

  /// Token ids of `bytes`, without bos. With `parseSpecial` control tokens
  /// written in the text become their id; otherwise they are cut as plain
  /// text. User-defined tokens are matched either way.
  std::optional<std::vector<int32_t>>
  encode(std::string_view bytes, bool parseSpecial, std::string &error) const;

  /// The same for the parts put together.
  std::optional<std::vector<int32_t>> encode(std::span<const TextPart> parts,
                                             std::string &error) const;

  /// As encode(bytes, true, error), with bos in front and eos at the end where
  /// the model wants them: what a prompt given as text becomes.
  std::optional<std::vector<int32_t>> encodePrompt(std::string_view bytes,
                                                   std::string &error) const;

  /// The bytes of the tokens, one after another, without the spaces that
  /// encode() puts in front (see SpacePrefix). Ids outside the vocabulary give
  /// nothing; `skipSpecial` leaves control tokens out.
  std::string decode(std::span<const int32_t> ids,
                     bool skipSpecial = false) const;

  /// True if decode(encode(x)) is x for all bytes x, but for U+2581 where that
  /// stands for a space. False where text is normalised, unknown characters
  /// become one token, or special tokens swallow white space.
  bool isLossless() const;

  /// Bytes of one token; empty for an id outside the vocabulary. The view
  /// lives as long as the Tokenizer.
  std::string_view tokenBytes(int32_t id) const;

  /// Id of the special (control or user-defined) token written `text`, or -1.
  int32_t specialId(std::string_view text) const;

  bool isSpecial(int32_t id) const;         ///< a control token
  bool isCutOut(int32_t id) const;          ///< control or user-defined
  bool isEndOfGeneration(int32_t id) const; ///< eos or one of extraEnds
  int32_t vocabularySize() const;
  const TokenizerData &data() const;

private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

/// Puts tokens together: knows which of them starts a section, where the space
/// that encode() put in front is left out again.
class TokenJoiner {
public:
  /// `fromStart`: the first token starts a text; else it continues one.
  TokenJoiner(const Tokenizer &tokenizer, bool skipSpecial, bool fromStart);

  /// The bytes that token `id` adds. The view lives as long as the Tokenizer.
  std::string_view next(int32_t id);

private:
  const Tokenizer *tokenizer;
  bool skipSpecial;
  bool first;        ///< nothing came yet but the bos of a prompt
  bool sectionStart; ///< what comes next starts a section
};

/// Turns tokens into text as they arrive. A UTF-8 sequence spread over several
/// tokens is held back (at most 3 bytes) until it is complete or cannot become
/// valid, so that every chunk can be printed at once. All bytes come out in
/// order, invalid ones unchanged. The Tokenizer must outlive it.
class StreamDecoder {
public:
  /// `fromStart`: the first token starts a text, as in Tokenizer::decode; else
  /// it continues one, and keeps a space in front.
  explicit StreamDecoder(const Tokenizer &tokenizer, bool skipSpecial = true,
                         bool fromStart = false)
      : joiner(tokenizer, skipSpecial, fromStart) {}

  /// The text that is ready after token `id`; may be empty.
  std::string push(int32_t id);
  /// What is still held back, complete or not.
  std::string finish();

private:
  TokenJoiner joiner;
  std::string held;
};

} // namespace gptc::text

#endif // GPTC_RUNTIME_TEXT_TOKENIZER_H
