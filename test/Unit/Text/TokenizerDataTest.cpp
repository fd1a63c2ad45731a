//===- TokenizerDataTest.cpp - The file form and what it refuses ----------===//
#include "TextFixtures.h"
#include <gtest/gtest.h>

using namespace gptc::text;
using namespace gptc::text::test;

static TokenizerData example() {
  TokenizerData data = tinyData({{"a", "b"}, {"ab", "c"}}, "smollm");
  data.bos = 3;
  data.pad = 4;
  data.extraEnds = {5, 6};
  data.addBos = true;
  data.chatTemplate = "{{ x }}";
  return data;
}

/// The checksum made right again after `change` to the payload.
static std::vector<uint8_t> resealed(std::vector<uint8_t> file) {
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 24; i < file.size(); ++i)
    hash = (hash ^ file[i]) * 0x100000001b3;
  for (int i = 0; i < 8; ++i) {
    file[8 + i] = uint8_t((file.size() - 24) >> (8 * i));
    file[16 + i] = uint8_t(hash >> (8 * i));
  }
  return file;
}

TEST(TokenizerData, FileFormRoundTrips) {
  std::string error;
  auto file = serialize(example());
  EXPECT_EQ(std::string(file.begin(), file.begin() + 8), "GPTCTOK1");
  auto back = parse(file, error);
  ASSERT_TRUE(back) << error;
  EXPECT_TRUE(*back == example());
}

TEST(TokenizerData, DamagedFilesAreRefused) {
  std::string error;
  auto file = serialize(example());
  EXPECT_FALSE(parse({}, error));
  EXPECT_EQ(error, "tokenizer file: expected a header starting with "
                   "'GPTCTOK1'; the file is damaged or of another version, "
                   "compile the package again");
  for (size_t length = 0; length < file.size(); ++length)
    ASSERT_FALSE(parse(std::span(file).first(length), error)) << length;
  for (size_t at = 0; at < file.size(); ++at) {
    auto damaged = file;
    damaged[at] ^= 0x40;
    ASSERT_FALSE(parse(damaged, error)) << at;
  }
  file.push_back(0);
  EXPECT_FALSE(parse(file, error));
}

TEST(TokenizerData, HostileSizesAreRefusedWithoutAllocating) {
  // With a right checksum: every 32-bit field set to huge, every prefix.
  std::string error;
  auto file = serialize(example());
  for (size_t at = 24; at + 4 <= file.size(); ++at) {
    auto hostile = file;
    for (size_t i = 0; i < 4; ++i)
      hostile[at + i] = 0xff;
    auto data = parse(resealed(hostile), error);
    if (data)
      EXPECT_TRUE(validate(*data, error)) << error;
  }
  for (size_t length = 24; length < file.size(); ++length) {
    auto cut = file;
    cut.resize(length);
    ASSERT_FALSE(parse(resealed(cut), error)) << length;
  }
}

TEST(TokenizerData, InconsistentDataIsRefused) {
  std::string error;
  auto refused = [&](auto change) {
    TokenizerData data = example();
    change(data);
    error.clear();
    EXPECT_FALSE(validate(data, error));
    return error;
  };
  EXPECT_EQ(refused([](auto &d) { d.model = "unigram"; }),
            "tokenizer model 'unigram' is not supported; expected 'bpe'");
  EXPECT_EQ(refused([](auto &d) { d.pre = "gpt-2"; }),
            "pre-tokenizer 'gpt-2' is not supported; expected 'gpt2', 'smollm' "
            "or 'llama3'");
  EXPECT_EQ(refused([](auto &d) { d.kinds.pop_back(); }),
            "expected one kind for each of 262 tokens, got 261");
  EXPECT_EQ(refused([](auto &d) { d.bos = 262; }),
            "bos id 262 is outside the vocabulary of 262 tokens");
  EXPECT_EQ(refused([](auto &d) { d.extraEnds = {-1}; }),
            "end-of-generation id -1 is outside the vocabulary of 262 tokens");
  EXPECT_EQ(refused([](auto &d) { d.bos = -1; }),
            "the tokenizer adds bos to every prompt but names no bos token");
  EXPECT_EQ(refused([](auto &d) { d.merges[1].right = 999; }),
            "merge 1: expected token ids below 262, got 256 999 -> 257");
  EXPECT_EQ(refused([](auto &d) { d.merges[1].right = 'd'; }),
            "merge 1: token 257 is not token 256 followed by token 100");
  EXPECT_EQ(refused([](auto &d) { d.kinds[9] = TokenKind(9); }),
            "token 9: unknown kind 9");
  EXPECT_EQ(refused([](auto &d) { d.kinds[257] = TokenKind::Byte; }),
            "token 257: expected one byte for a byte token, got 3");
  EXPECT_EQ(refused([](auto &d) {
              d.tokens.clear();
              d.kinds.clear();
            }),
            "expected 1 to 2147483647 tokens, got 0");
}

TEST(TokenizerData, PreTokenizerNames) {
  EXPECT_EQ(canonicalPreTokenizer("gpt-2"), "gpt2");
  EXPECT_EQ(canonicalPreTokenizer("llama-bpe"), "llama3");
  EXPECT_EQ(canonicalPreTokenizer("smollm"), "smollm");
  EXPECT_EQ(canonicalPreTokenizer("qwen2"), std::nullopt);
}
