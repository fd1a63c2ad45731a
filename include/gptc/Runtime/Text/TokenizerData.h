//===- TokenizerData.h - A vocabulary as plain data -----------------------===//
//
// What a tokenizer is made of, with no behaviour: the token bytes, the merges
// in rank order or the scores, the special ids and the rules for spaces.
// Importers fill it (TokenizerImport.h), a compiled package carries it as one
// file, and Tokenizer (Tokenizer.h) runs it.
//
// Three models, by name:
//   bpe                byte-level BPE as in GPT-2: pieces of a pre-tokenizer,
//                      merged from their bytes
//   sentencepiece-bpe  BPE on characters as in SentencePiece (Kudo and
//                      Richardson, arXiv:1808.06226), by merges or by scores
//   unigram            the likeliest cut by a unigram model (Kudo,
//                      arXiv:1804.10959)
//
// Refuses: other models, pre-tokenizers it cannot run, ids outside the
// vocabulary, merges whose result is not the concatenation of their parts,
// scores that are not finite, byte fallback without all 256 byte tokens.
// Errors are returned as a lower case message; nothing here throws on input.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_RUNTIME_TEXT_TOKENIZERDATA_H
#define GPTC_RUNTIME_TEXT_TOKENIZERDATA_H

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace gptc::text {

/// What a token is used for. The values are stored in files.
enum class TokenKind : uint8_t {
  Normal = 0,      ///< reached by cutting and merging text
  Control = 1,     ///< special: matched in text only on request
  UserDefined = 2, ///< added by a user: always matched in text as a whole
  Unused = 3,      ///< never produced by encoding
  Byte = 4,        ///< stands for one byte; never merged
};

/// One merge: the tokens `left` and `right` side by side become `merged`.
struct Merge {
  uint32_t left = 0, right = 0, merged = 0;
  bool operator==(const Merge &) const = default;
};

/// Where the SentencePiece models put a space in front of text. A section is
/// the text between two special tokens. The values are stored in files.
enum class SpacePrefix : uint8_t {
  None = 0,
  EachSection = 1,      ///< in front of every section
  EachUnlessSpace = 2,  ///< of every section that starts with none
  FirstUnlessSpace = 3, ///< only at the very start of the text, as above
};

/// White space beside a special token that belongs to it: bits of
/// TokenizerData::strips.
constexpr uint8_t stripLeft = 1, stripRight = 2;

struct TokenizerData {
  /// "bpe", "sentencepiece-bpe" or "unigram".
  std::string model = "bpe";
  /// Canonical name of the pre-tokenizer of "bpe": "gpt2", "smollm", "llama3"
  /// or "qwen2"; else empty.
  std::string pre;
  /// Bytes of each token by id. Normal tokens are raw bytes: GPT-2's
  /// byte-to-unicode table undone, SentencePiece's U+2581 a space; special
  /// tokens are verbatim UTF-8.
  std::vector<std::string> tokens;
  /// One per token.
  std::vector<TokenKind> kinds;
  /// In rank order, best first.
  std::vector<Merge> merges;
  /// Empty, or one per token: log-probabilities of "unigram", or the order of
  /// merging of "sentencepiece-bpe" (best first) in place of `merges`.
  std::vector<float> scores;
  /// Empty, or bits for each token (stripLeft, stripRight); special ones only.
  std::vector<uint8_t> strips;
  /// Token ids, or -1 where the checkpoint names none.
  int32_t bos = -1, eos = -1, pad = -1;
  /// What stands for characters without a token; -1: such text is refused.
  int32_t unk = -1;
  /// Ids besides `eos` after which generation ends.
  std::vector<int32_t> extraEnds;
  /// A prompt starts with `bos`, ends with `eos`.
  bool addBos = false, addEos = false;
  /// Text is brought into Unicode's normal form C first.
  bool nfc = false;
  /// Characters without a token become their bytes' tokens (kind Byte).
  bool byteFallback = false;
  /// Neighbouring characters without a token become one `unk`.
  bool fuseUnk = false;
  /// Text is cut in front of every space before it is merged.
  bool splitAtSpaces = false;
  SpacePrefix spacePrefix = SpacePrefix::None;
  /// A piece that is itself a token is taken whole, before any merging
  /// (Hugging Face's `ignore_merges`; Llama 3 uses it).
  bool ignoreMerges = false;
  /// The checkpoint's chat template, or empty. See ChatTemplate.h.
  std::string chatTemplate;

  bool operator==(const TokenizerData &) const = default;
};

/// The canonical name of a pre-tokenizer ("gpt-2" -> "gpt2", "llama-bpe" ->
/// "llama3", ...), or nothing if this library has no rules for it.
std::optional<std::string> canonicalPreTokenizer(std::string_view name);

/// True if the data is consistent; otherwise `error` says what is wrong.
bool validate(const TokenizerData &data, std::string &error);

/// Reads the file form. Counts are checked against the bytes present before
/// anything is allocated, the checksum before anything is read, and the result
/// is validated. Format (little-endian): "GPTCTOK2", u64 payload bytes, u64
/// FNV-1a of the payload, payload (TokenizerFile.cpp).
std::optional<TokenizerData> parse(std::span<const uint8_t> bytes,
                                   std::string &error);

/// The inverse of parse(). `data` must be valid.
std::vector<uint8_t> serialize(const TokenizerData &data);

} // namespace gptc::text

#endif // GPTC_RUNTIME_TEXT_TOKENIZERDATA_H
