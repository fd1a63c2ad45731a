//===- Tokenizer.h - Byte-level BPE: text to token ids and back -----------===//
//
// Encoding: special tokens are cut out first (leftmost, longest), the rest is
// cut into pieces by the pre-tokenizer's pattern, and each piece is merged
// from its bytes by rank (lowest first, leftmost on ties), as Hugging Face's
// `tokenizers` does. Method: Sennrich et al., arXiv:1508.07909, on bytes as in
// GPT-2 (Radford et al. 2019). O(n log n) in the length of a piece.
//
// Input need not be valid UTF-8: each invalid byte counts as a symbol
// character. Refuses: a byte for which the vocabulary has no token (the error
// names it). A Tokenizer is immutable and may be used by several threads.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_RUNTIME_TEXT_TOKENIZER_H
#define GPTC_RUNTIME_TEXT_TOKENIZER_H

#include "gptc/Runtime/Text/TokenizerData.h"
#include <memory>

namespace gptc::text {

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

  /// As encode(bytes, true, error), starting with bos where the model wants
  /// that: what a prompt given as text becomes.
  std::optional<std::vector<int32_t>> encodePrompt(std::string_view bytes,
                                                   std::string &error) const;

  /// The bytes of the tokens, one after another. Ids outside the vocabulary
  /// give nothing; `skipSpecial` leaves control tokens out.
  std::string decode(std::span<const int32_t> ids,
                     bool skipSpecial = false) const;

  /// Bytes of one token; empty for an id outside the vocabulary. The view
  /// lives as long as the Tokenizer.
  std::string_view tokenBytes(int32_t id) const;

  /// Id of the special (control or user-defined) token written `text`, or -1.
  int32_t specialId(std::string_view text) const;

  bool isSpecial(int32_t id) const;         ///< a control token
  bool isEndOfGeneration(int32_t id) const; ///< eos or one of extraEnds
  int32_t vocabularySize() const;
  const TokenizerData &data() const;

private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

/// Turns tokens into text as they arrive. A UTF-8 sequence spread over several
/// tokens is held back (at most 3 bytes) until it is complete or cannot become
/// valid, so that every chunk can be printed at once. All bytes come out in
/// order, invalid ones unchanged. The Tokenizer must outlive it.
class StreamDecoder {
public:
  explicit StreamDecoder(const Tokenizer &tokenizer, bool skipSpecial = true)
      : tokenizer(&tokenizer), skipSpecial(skipSpecial) {}

  /// The text that is ready after token `id`; may be empty.
  std::string push(int32_t id);
  /// What is still held back, complete or not.
  std::string finish();

private:
  const Tokenizer *tokenizer;
  bool skipSpecial;
  std::string held;
};

} // namespace gptc::text

#endif // GPTC_RUNTIME_TEXT_TOKENIZER_H
