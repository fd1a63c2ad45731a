//===- TokenizerData.h - A byte-level BPE vocabulary as plain data --------===//
//
// What a tokenizer is made of, with no behaviour: the token bytes, the merges
// in rank order, the special ids and the name of the pre-tokenizer. Importers
// fill it (TokenizerImport.h), a compiled package carries it as one file, and
// Tokenizer (Tokenizer.h) runs it.
//
// Refuses: any model but "bpe", pre-tokenizers it cannot run, ids outside the
// vocabulary, merges whose result is not the concatenation of their parts.
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
  Normal = 0,      ///< reached by merging bytes
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

struct TokenizerData {
  /// Always "bpe" (byte-level byte-pair encoding).
  std::string model = "bpe";
  /// Canonical name of the pre-tokenizer: "gpt2", "smollm" or "llama3".
  std::string pre;
  /// Bytes of each token by id. Normal tokens are raw bytes (GPT-2's
  /// byte-to-unicode table undone); special tokens are verbatim UTF-8.
  std::vector<std::string> tokens;
  /// One per token.
  std::vector<TokenKind> kinds;
  /// In rank order, best first.
  std::vector<Merge> merges;
  /// Token ids, or -1 where the checkpoint names none.
  int32_t bos = -1, eos = -1, pad = -1;
  /// Ids besides `eos` after which generation ends.
  std::vector<int32_t> extraEnds;
  /// A prompt starts with `bos`.
  bool addBos = false;
  /// A piece that is itself a token is taken whole, before any merging
  /// (Hugging Face's `ignore_merges`; Llama 3 uses it).
  bool ignoreMerges = false;
  /// The checkpoint's Jinja chat template, or empty. See ChatTemplate.h.
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
/// is validated. Format (little-endian): "GPTCTOK1", u64 payload bytes, u64
/// FNV-1a of the payload, payload.
std::optional<TokenizerData> parse(std::span<const uint8_t> bytes,
                                   std::string &error);

/// The inverse of parse(). `data` must be valid.
std::vector<uint8_t> serialize(const TokenizerData &data);

} // namespace gptc::text

#endif // GPTC_RUNTIME_TEXT_TOKENIZERDATA_H
