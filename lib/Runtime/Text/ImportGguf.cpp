//===- ImportGguf.cpp - TokenizerData from GGUF metadata ------------------===//
//
// Keys and token types as in the GGUF specification (ggml/docs/gguf.md) and
// llama.cpp, which decides what absent keys mean. "gpt2" is GGUF's name for
// byte-level BPE, "llama" for SentencePiece's BPE by scores, "t5" for unigram
// models. Refuses other models, unknown pre-tokenizers, missing merges or
// scores, character maps.
//
//===----------------------------------------------------------------------===//
#include "VocabularyBuilder.h"
#include "gptc/Runtime/Text/TokenizerImport.h"
#include <algorithm>
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

namespace {
class Importer {
public:
  Importer(const GgufTokenizer &gguf, std::string &error)
      : gguf(gguf), error(error) {}
  std::optional<TokenizerData> run() {
    bool byteLevel = gguf.model == "gpt2";
    if (!(byteLevel ? readByteLevel() : readSentencePiece()) || !readTokens() ||
        (byteLevel && !readMerges()) || !readIds())
      return std::nullopt;
    readEnds();
    if (!byteLevel && gguf.architecture == "phi3")
      readStrips();
    return builder.finish(error);
  }

private:
  bool fail(std::string message) {
    error = std::move(message);
    return false;
  }
  bool readByteLevel();
  bool readSentencePiece();
  bool readTokens();
  bool readMerges();
  bool readIds();
  void readEnds();
  void readStrips();
  bool setId(int64_t id, std::string_view key, int32_t &to);

  const GgufTokenizer &gguf;
  std::string &error;
  VocabularyBuilder builder;
  std::vector<std::string> userDefined; ///< what the builder has views of
};
} // namespace

bool Importer::readByteLevel() {
  auto pre = canonicalPreTokenizer(gguf.pre);
  if (!pre)
    return fail(fmt::format("tokenizer.ggml.pre: '{}' is not supported; "
                            "expected 'gpt-2', 'smollm', 'llama-bpe' or "
                            "'qwen2'",
                            gguf.pre));
  builder.data.pre = *pre;
  builder.data.ignoreMerges = *pre == "llama3";
  // Qwen2's own tokenizer normalises; the file has no key for it.
  builder.data.nfc = *pre == "qwen2";
  return true;
}

bool Importer::readSentencePiece() {
  if (gguf.model != "llama" && gguf.model != "t5")
    return fail(fmt::format("tokenizer.ggml.model: '{}' is not supported; "
                            "expected 'gpt2' (byte-level BPE), 'llama' "
                            "(SentencePiece BPE) or 't5' (unigram)",
                            gguf.model));
  if (gguf.hasCharacterMap)
    return fail("tokenizer.ggml.precompiled_charsmap: character maps are not "
                "supported");
  if (gguf.removeExtraSpaces)
    return fail("tokenizer.ggml.remove_extra_whitespaces: true is not "
                "supported");
  if (gguf.scores.size() != gguf.tokens.size())
    return fail(fmt::format("tokenizer.ggml.scores: expected {} entries, one "
                            "for each token, got {}",
                            gguf.tokens.size(), gguf.scores.size()));
  TokenizerData &data = builder.data;
  data.model = gguf.model == "t5" ? "unigram" : "sentencepiece-bpe";
  data.scores = gguf.scores;
  data.fuseUnk = true;
  data.spacePrefix =
      gguf.addSpacePrefix ? SpacePrefix::EachSection : SpacePrefix::None;
  builder.writing = VocabularyBuilder::Writing::SentencePiece;
  return true;
}

bool Importer::readTokens() {
  size_t count = gguf.tokens.size();
  if (!gguf.tokenTypes.empty() && gguf.tokenTypes.size() != count)
    return fail(fmt::format("tokenizer.ggml.token_type: expected {} entries, "
                            "one for each token, got {}",
                            count, gguf.tokenTypes.size()));
  bool marks = builder.writing == VocabularyBuilder::Writing::SentencePiece;
  userDefined.reserve(count);
  for (size_t id = 0; id < count; ++id) {
    auto kind = gguf.tokenTypes.empty() ? TokenKind::Normal
                                        : kindFromGguf(gguf.tokenTypes[id]);
    if (!kind)
      return fail(fmt::format("tokenizer.ggml.token_type: token {}: expected "
                              "1 to 6, got {}",
                              id, gguf.tokenTypes[id]));
    std::string_view written = gguf.tokens[id];
    // Those of SentencePiece are matched in text with its spaces written so.
    if (marks && kind == TokenKind::UserDefined)
      written = userDefined.emplace_back(withMarksAsSpaces(written));
    if (!builder.setToken(int64_t(id), written, *kind, error))
      return fail("tokenizer.ggml.tokens: " + error);
    builder.data.byteFallback |= marks && kind == TokenKind::Byte;
    if (marks && !gguf.tokenTypes.empty() && gguf.tokenTypes[id] == 2 &&
        builder.data.unk == -1)
      builder.data.unk = int32_t(id);
  }
  return true;
}

bool Importer::readMerges() {
  if (gguf.merges.empty())
    return fail("tokenizer.ggml.merges: expected the merges of a byte-level "
                "BPE, got none");
  for (std::string_view merge : gguf.merges)
    if (!builder.addMerge(merge, error))
      return fail("tokenizer.ggml.merges: " + error);
  return true;
}

/// Checked here, while the ids still have 64 bits.
bool Importer::setId(int64_t id, std::string_view key, int32_t &to) {
  if (id < -1 || id >= int64_t(gguf.tokens.size()))
    return fail(fmt::format("tokenizer.ggml.{}: expected an id below {}, got "
                            "{}",
                            key, gguf.tokens.size(), id));
  to = int32_t(id);
  return true;
}

bool Importer::readIds() {
  TokenizerData &data = builder.data;
  if (!setId(gguf.bos, "bos_token_id", data.bos) ||
      !setId(gguf.eos, "eos_token_id", data.eos) ||
      !setId(gguf.pad, "padding_token_id", data.pad))
    return false;
  if (data.model != "bpe" && gguf.unk != -1 &&
      !setId(gguf.unk, "unknown_token_id", data.unk))
    return false;
  for (int64_t end : gguf.extraEnds) {
    int32_t id = -1;
    if (!setId(end, "eot_token_id", id))
      return false;
    if (id != -1)
      data.extraEnds.push_back(id);
  }
  return true;
}

void Importer::readEnds() {
  TokenizerData &data = builder.data;
  bool startsWithBos = gguf.model == "llama" || data.pre == "llama3";
  data.addBos = gguf.addBos.value_or(startsWithBos && data.bos != -1);
  data.addEos = gguf.addEos.value_or(gguf.model == "t5" && data.eos != -1);
  data.chatTemplate = gguf.chatTemplate;
}

/// As in Phi-3's tokenizer.json.
void Importer::readStrips() {
  static constexpr std::string_view without[] = {"<unk>", "<s>",
                                                 "<|endoftext|>"};
  const TokenizerData &data = builder.data;
  for (size_t id = 0; id < data.tokens.size(); ++id) {
    bool special =
        data.kinds[id] == TokenKind::Control ||
        (data.kinds[id] == TokenKind::UserDefined && data.tokens[id] == "</s>");
    if (special &&
        std::ranges::find(without, data.tokens[id]) == std::end(without))
      builder.setStrip(int64_t(id), stripRight);
  }
}

std::optional<TokenizerData> tokenizerFromGguf(const GgufTokenizer &gguf,
                                               std::string &error) {
  return Importer(gguf, error).run();
}

} // namespace gptc::text
