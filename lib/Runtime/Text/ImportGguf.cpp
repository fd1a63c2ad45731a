//===- ImportGguf.cpp - TokenizerData from GGUF metadata ------------------===//
//
// Keys and token types as in the GGUF specification (ggml/docs/gguf.md).
// "gpt2" is GGUF's name for byte-level BPE. Refuses other models ("llama" is
// SentencePiece), unknown pre-tokenizers and missing merges.
//
//===----------------------------------------------------------------------===//
#include "VocabularyBuilder.h"
#include "gptc/Runtime/Text/TokenizerImport.h"
#include <fmt/format.h>

namespace gptc::text {

static std::optional<TokenKind> kindFromGguf(int32_t type) {
  switch (type) {
  case 1:
    return TokenKind::Normal;
  case 2: // unknown: written in no text
  case 3:
    return TokenKind::Control;
  case 4:
    return TokenKind::UserDefined;
  case 5:
    return TokenKind::Unused;
  case 6:
    return TokenKind::Byte;
  default:
    return std::nullopt;
  }
}

std::optional<TokenizerData> tokenizerFromGguf(const GgufTokenizer &gguf,
                                               std::string &error) {
  auto refuse = [&](std::string message) {
    error = std::move(message);
    return std::nullopt;
  };
  if (gguf.model != "gpt2")
    return refuse(fmt::format("tokenizer.ggml.model: '{}' is not supported; "
                              "expected 'gpt2' (byte-level BPE)",
                              gguf.model));
  auto pre = canonicalPreTokenizer(gguf.pre);
  if (!pre)
    return refuse(fmt::format("tokenizer.ggml.pre: '{}' is not supported; "
                              "expected 'gpt-2', 'smollm' or 'llama-bpe'",
                              gguf.pre));
  size_t count = gguf.tokens.size();
  if (!gguf.tokenTypes.empty() && gguf.tokenTypes.size() != count)
    return refuse(fmt::format("tokenizer.ggml.token_type: expected {} entries, "
                              "one for each token, got {}",
                              count, gguf.tokenTypes.size()));
  VocabularyBuilder builder;
  builder.data.pre = *pre;
  builder.data.ignoreMerges = *pre == "llama3";
  builder.data.addBos = gguf.addBos;
  builder.data.chatTemplate = gguf.chatTemplate;
  for (size_t id = 0; id < count; ++id) {
    auto kind = gguf.tokenTypes.empty() ? TokenKind::Normal
                                        : kindFromGguf(gguf.tokenTypes[id]);
    if (!kind)
      return refuse(fmt::format("tokenizer.ggml.token_type: token {}: expected "
                                "1 to 6, got {}",
                                id, gguf.tokenTypes[id]));
    if (!builder.setToken(int64_t(id), gguf.tokens[id], *kind, error))
      return refuse("tokenizer.ggml.tokens: " + error);
  }
  if (gguf.merges.empty())
    return refuse("tokenizer.ggml.merges: expected the merges of a byte-level "
                  "BPE, got none");
  for (std::string_view merge : gguf.merges)
    if (!builder.addMerge(merge, error))
      return refuse("tokenizer.ggml.merges: " + error);

  // Checked here, while the ids still have 64 bits.
  auto setId = [&](int64_t id, std::string_view key, int32_t &to) {
    if (id < -1 || id >= int64_t(count)) {
      error = fmt::format("tokenizer.ggml.{}: expected an id below {}, got {}",
                          key, count, id);
      return false;
    }
    to = int32_t(id);
    return true;
  };
  if (!setId(gguf.bos, "bos_token_id", builder.data.bos) ||
      !setId(gguf.eos, "eos_token_id", builder.data.eos) ||
      !setId(gguf.pad, "padding_token_id", builder.data.pad))
    return std::nullopt;
  for (int64_t end : gguf.extraEnds) {
    int32_t id = -1;
    if (!setId(end, "eot_token_id", id))
      return std::nullopt;
    if (id != -1)
      builder.data.extraEnds.push_back(id);
  }
  return builder.finish(error);
}

} // namespace gptc::text
