//===- TextFixtures.cpp - Vocabularies for the tests of the Text library --===//
#include "TextFixtures.h"
#include "gptc/Checkpoint/Gguf.h"
#include <cstdlib>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace gptc::text::test {

std::string readFile(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

nlohmann::json golden(const std::string &path) {
  auto file = nlohmann::json::parse(
      readFile(std::string(GPTC_GOLDEN_DIR) + "/" + path), nullptr, false);
  return file.is_discarded() ? nlohmann::json() : file;
}

std::optional<TokenizerData> tokenizerDataFromGgufFile(const std::string &path,
                                                       std::string &error) {
  namespace ckpt = gptc::checkpoint;
  auto file = ckpt::MappedFile::open(path);
  if (!file) {
    error = file.error().message;
    return std::nullopt;
  }
  auto contents = ckpt::gguf::read(*file);
  if (!contents) {
    error = contents.error().message;
    return std::nullopt;
  }
  const ckpt::gguf::Metadata &metadata = contents->metadata;
  auto text = [&](const char *key) {
    auto value = metadata.stringOr(key, "");
    return value ? *value : std::string();
  };
  auto id = [&](const char *key) {
    auto value = metadata.integerOr(key, -1);
    return value ? *value : int64_t(-1);
  };
  GgufTokenizer gguf;
  std::string model = text("tokenizer.ggml.model");
  std::string pre = text("tokenizer.ggml.pre");
  std::string chat = text("tokenizer.chat_template");
  gguf.model = model;
  gguf.pre = pre;
  gguf.chatTemplate = chat;
  if (auto tokens = metadata.strings("tokenizer.ggml.tokens"))
    gguf.tokens = (*tokens)->strings;
  if (auto merges = metadata.strings("tokenizer.ggml.merges"))
    gguf.merges = (*merges)->strings;
  if (auto types = metadata.array("tokenizer.ggml.token_type"))
    for (uint64_t i = 0; i < (*types)->count; ++i)
      gguf.tokenTypes.push_back(int32_t((*types)->integerAt(i)));
  gguf.bos = id("tokenizer.ggml.bos_token_id");
  gguf.eos = id("tokenizer.ggml.eos_token_id");
  gguf.pad = id("tokenizer.ggml.padding_token_id");
  gguf.unk = id("tokenizer.ggml.unknown_token_id");
  if (auto scores = metadata.array("tokenizer.ggml.scores"))
    for (uint64_t i = 0; i < (*scores)->count; ++i)
      gguf.scores.push_back(float((*scores)->realAt(i)));
  if (auto add = metadata.boolean("tokenizer.ggml.add_bos_token"))
    gguf.addBos = *add;
  if (auto add = metadata.booleanOr("tokenizer.ggml.add_space_prefix", true))
    gguf.addSpacePrefix = *add;
  return tokenizerFromGguf(gguf, error);
}

static std::optional<Tokenizer> create(std::optional<TokenizerData> data,
                                       std::string &error) {
  std::optional<Tokenizer> tokenizer;
  if (data)
    tokenizer = Tokenizer::create(std::move(*data), error);
  EXPECT_TRUE(tokenizer) << error;
  return tokenizer;
}

std::optional<Tokenizer> gpt2Tokenizer() {
  const char *folder = std::getenv("GPTC_GPT2_VOCAB_DIR");
  if (!folder || !*folder)
    return std::nullopt;
  std::string error;
  return create(tokenizerFromGpt2Files(
                    readFile(std::string(folder) + "/encoder.json"),
                    readFile(std::string(folder) + "/vocab.bpe"), error),
                error);
}

std::optional<Tokenizer> smollm2Tokenizer() {
  const char *file = std::getenv("GPTC_SMOLLM2_GGUF");
  if (!file || !*file)
    return std::nullopt;
  std::string error;
  return create(tokenizerDataFromGgufFile(file, error), error);
}

TokenizerData
tinyData(const std::vector<std::pair<std::string, std::string>> &merges,
         const std::string &pre) {
  TokenizerData data;
  data.pre = pre;
  for (int byte = 0; byte < 256; ++byte)
    data.tokens.emplace_back(1, char(byte));
  auto idOf = [&](const std::string &bytes) {
    return uint32_t(std::ranges::find(data.tokens, bytes) -
                    data.tokens.begin());
  };
  for (const auto &[left, right] : merges) {
    Merge merge{idOf(left), idOf(right), idOf(left + right)};
    if (merge.merged == data.tokens.size())
      data.tokens.push_back(left + right);
    data.merges.push_back(merge);
  }
  data.kinds.assign(data.tokens.size(), TokenKind::Normal);
  data.eos = int32_t(data.tokens.size());
  for (const char *text : {"<|end|>", "<|im_start|>", "<|im_end|>"}) {
    data.tokens.push_back(text);
    data.kinds.push_back(TokenKind::Control);
  }
  data.tokens.push_back("[[u]]");
  data.kinds.push_back(TokenKind::UserDefined);
  return data;
}

Tokenizer
tinyTokenizer(const std::vector<std::pair<std::string, std::string>> &merges,
              const std::string &pre) {
  std::string error;
  auto tokenizer = Tokenizer::create(tinyData(merges, pre), error);
  EXPECT_TRUE(tokenizer) << error;
  return std::move(*tokenizer);
}

} // namespace gptc::text::test
