//===- TokenizerDataTest.cpp - The file form and what it refuses ----------===//
#include "TextFixtures.h"
#include <cmath>
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

/// A SentencePiece vocabulary in which no member has its default.
static TokenizerData sentencePieceExample() {
  TokenizerData data = example();
  data.model = "sentencepiece-bpe";
  data.pre = "";
  data.nfc = data.addEos = data.fuseUnk = data.splitAtSpaces = true;
  data.ignoreMerges = data.byteFallback = true;
  data.unk = 1;
  data.eos = 2;
  data.spacePrefix = SpacePrefix::FirstUnlessSpace;
  for (int byte = 0; byte < 256; ++byte)
    data.kinds[byte] = TokenKind::Byte;
  data.merges.clear();
  for (size_t id = 0; id < data.tokens.size(); ++id) {
    data.scores.push_back(-0.5f * float(id));
    data.strips.push_back(data.kinds[id] == TokenKind::Control ? stripRight
                                                               : 0);
  }
  return data;
}

TEST(TokenizerData, FileFormKeepsSentencePiece) {
  std::string error;
  TokenizerData data = sentencePieceExample();
  for (const char *model : {"sentencepiece-bpe", "unigram"}) {
    data.model = model;
    auto file = serialize(data);
    auto back = parse(file, error);
    ASSERT_TRUE(back) << error;
    EXPECT_TRUE(*back == data);
    for (size_t at = 24; at + 4 <= file.size(); ++at) {
      auto hostile = file;
      for (size_t i = 0; i < 4; ++i)
        hostile[at + i] = 0xff;
      if (auto changed = parse(resealed(hostile), error))
        EXPECT_TRUE(validate(*changed, error)) << error;
    }
    for (size_t length = 24; length < file.size(); ++length) {
      auto cut = file;
      cut.resize(length);
      ASSERT_FALSE(parse(resealed(cut), error)) << length;
    }
  }
}

TEST(TokenizerData, InconsistentSentencePieceIsRefused) {
  std::string error;
  auto refused = [&](auto change) {
    TokenizerData data = sentencePieceExample();
    EXPECT_TRUE(validate(data, error)) << error;
    change(data);
    error.clear();
    EXPECT_FALSE(validate(data, error));
    return error;
  };
  EXPECT_EQ(refused([](auto &d) { d.scores.pop_back(); }),
            "expected a score for each of 262 tokens, got 261");
  EXPECT_EQ(refused([](auto &d) {
              d.model = "unigram";
              d.scores.clear();
            }),
            "expected a score for each of 262 tokens, got 0");
  EXPECT_EQ(refused([](auto &d) { d.scores[7] = NAN; }),
            "token 7: expected a finite score, got nan");
  EXPECT_EQ(refused([](auto &d) { d.scores[7] = -INFINITY; }),
            "token 7: expected a finite score, got -inf");
  EXPECT_EQ(refused([](auto &d) {
              d.merges = {{'a', 'b', 256}};
            }),
            "expected merges or scores, got both");
  EXPECT_EQ(refused([](auto &d) { d.kinds[9] = TokenKind::Normal; }),
            "byte fallback: expected a token for each of the 256 bytes, found "
            "none for 0x09");
  EXPECT_EQ(refused([](auto &d) { d.strips.pop_back(); }),
            "expected no strip rules or one for each of 262 tokens, got 261");
  EXPECT_EQ(refused([](auto &d) { d.strips[0] = stripLeft; }),
            "token 0: unexpected strip rule 1");
  EXPECT_EQ(refused([](auto &d) { d.strips[258] = 4; }),
            "token 258: unexpected strip rule 4");
  EXPECT_EQ(refused([](auto &d) { d.spacePrefix = SpacePrefix(9); }),
            "unknown rule 9 for the space in front");
  EXPECT_EQ(refused([](auto &d) { d.unk = 262; }),
            "unknown-token id 262 is outside the vocabulary of 262 tokens");
  EXPECT_EQ(refused([](auto &d) { d.eos = -1; }),
            "the tokenizer adds eos to every prompt but names no eos token");
  EXPECT_EQ(refused([](auto &d) {
              d.model = "bpe";
              d.pre = "gpt2";
            }),
            "byte-level BPE has neither unknown characters nor rules for "
            "spaces");
}

TEST(TokenizerData, FileFormRoundTrips) {
  std::string error;
  auto file = serialize(example());
  EXPECT_EQ(std::string(file.begin(), file.begin() + 8), "GPTCTOK2");
  auto back = parse(file, error);
  ASSERT_TRUE(back) << error;
  EXPECT_TRUE(*back == example());
}

TEST(TokenizerData, DamagedFilesAreRefused) {
  std::string error;
  auto file = serialize(example());
  EXPECT_FALSE(parse({}, error));
  EXPECT_EQ(error, "tokenizer file: expected a header starting with "
                   "'GPTCTOK2'; the file is damaged or of another version, "
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

TEST(TokenizerData, UnknownFlagsAreRefused) {
  std::string error;
  TokenizerData data = example();
  auto file = serialize(data);
  size_t flags = 24 + 3 * 4 + data.model.size() + data.pre.size() +
                 data.chatTemplate.size() + 4 * 4;
  ASSERT_EQ(file[flags], 1); // addBos
  file[flags] |= 0x80;
  EXPECT_FALSE(parse(resealed(file), error));
  EXPECT_EQ(error, "tokenizer file: the sizes inside do not add up; the file "
                   "is damaged");
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
            "expected no pre-tokenizer for the model 'unigram', got 'smollm'");
  EXPECT_EQ(refused([](auto &d) { d.model = "wordpiece"; }),
            "tokenizer model 'wordpiece' is not supported; expected 'bpe', "
            "'sentencepiece-bpe' or 'unigram'");
  EXPECT_EQ(refused([](auto &d) { d.pre = "gpt-2"; }),
            "pre-tokenizer 'gpt-2' is not supported; expected 'gpt2', "
            "'smollm', 'llama3' or 'qwen2'");
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
  EXPECT_EQ(canonicalPreTokenizer("qwen2"), "qwen2");
  EXPECT_EQ(canonicalPreTokenizer("bert"), std::nullopt);
}
