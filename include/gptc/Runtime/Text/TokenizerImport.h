//===- TokenizerImport.h - TokenizerData from the usual checkpoint files --===//
//
// Three sources: the metadata of a GGUF file, Hugging Face's tokenizer.json,
// and GPT-2's vocab.json (encoder.json) with merges.txt (vocab.bpe).
//
// Refuses, by name: models other than those of TokenizerData, pre-tokenizers,
// normalizers (SentencePiece's character maps among them), decoders and
// post-processors this library does not run, added tokens that only match
// whole words, duplicate JSON keys and deep JSON. On refusal the result is
// empty and `error` is a lower case message; an importer may go on without a
// tokenizer and repeat the message as a warning.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_RUNTIME_TEXT_TOKENIZERIMPORT_H
#define GPTC_RUNTIME_TEXT_TOKENIZERIMPORT_H

#include "gptc/Runtime/Text/TokenizerData.h"

namespace gptc::text {

/// The `tokenizer.*` metadata of a GGUF file. Views need only live during the
/// call. Ids are -1 when the key is absent.
struct GgufTokenizer {
  /// tokenizer.ggml.model: "gpt2" (byte-level BPE), "llama" (SentencePiece's
  /// BPE) or "t5" (unigram).
  std::string_view model;
  std::string_view pre;                 ///< tokenizer.ggml.pre ("smollm", ...)
  std::vector<std::string_view> tokens; ///< tokenizer.ggml.tokens
  /// tokenizer.ggml.token_type: 1 normal, 2 unknown, 3 control,
  /// 4 user-defined, 5 unused, 6 byte. Empty: all normal.
  std::vector<int32_t> tokenTypes;
  std::vector<float> scores;            ///< tokenizer.ggml.scores
  std::vector<std::string_view> merges; ///< tokenizer.ggml.merges ("a b")
  int64_t bos = -1;                     ///< tokenizer.ggml.bos_token_id
  int64_t eos = -1;                     ///< tokenizer.ggml.eos_token_id
  int64_t pad = -1;                     ///< tokenizer.ggml.padding_token_id
  int64_t unk = -1;                     ///< tokenizer.ggml.unknown_token_id
  /// tokenizer.ggml.eot_token_id and eom_token_id where present.
  std::vector<int64_t> extraEnds;
  /// tokenizer.ggml.add_bos_token, add_eos_token. Absent: bos for "llama" and
  /// for the pre-tokenizer llama3, eos for "t5", where there is such a token.
  std::optional<bool> addBos, addEos;
  bool addSpacePrefix = true;     ///< tokenizer.ggml.add_space_prefix
  bool removeExtraSpaces = false; ///< tokenizer.ggml.remove_extra_whitespaces
  bool hasCharacterMap = false;   ///< tokenizer.ggml.precompiled_charsmap
  /// general.architecture: the special tokens of "phi3" swallow the white space
  /// after them, for which the format has no key.
  std::string_view architecture;
  std::string_view chatTemplate; ///< tokenizer.chat_template
};

std::optional<TokenizerData> tokenizerFromGguf(const GgufTokenizer &gguf,
                                               std::string &error);

/// `tokenizerJson` is the content of tokenizer.json; `configJson` that of
/// tokenizer_config.json (names bos, eos, pad and the chat template), or empty.
std::optional<TokenizerData>
tokenizerFromHuggingFace(std::string_view tokenizerJson,
                         std::string_view configJson, std::string &error);

/// The contents of GPT-2's two files. `<|endoftext|>` becomes bos and eos.
std::optional<TokenizerData> tokenizerFromGpt2Files(std::string_view vocabJson,
                                                    std::string_view mergesText,
                                                    std::string &error);

/// The chat template in the content of a tokenizer_config.json, of several the
/// one called "default"; empty if there is none.
std::optional<std::string> chatTemplateOf(std::string_view configJson,
                                          std::string &error);

} // namespace gptc::text

#endif // GPTC_RUNTIME_TEXT_TOKENIZERIMPORT_H
