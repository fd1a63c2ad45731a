//===- ImportTest.cpp - Tokenizers from checkpoint files ------------------===//
#include "StrictJson.h"
#include "TextFixtures.h"
#include <chrono>
#include <gtest/gtest.h>

using namespace gptc::text;
using namespace gptc::text::test;

//===----------------------------------------------------------------------===//
// GGUF
//===----------------------------------------------------------------------===//

static GgufTokenizer ggufExample() {
  GgufTokenizer gguf;
  gguf.model = "gpt2";
  gguf.pre = "smollm";
  // U+0120 is the space, U+010A the line feed of the byte alphabet.
  gguf.tokens = {"<|im_end|>",
                 "a",
                 "\xc4\xa0",
                 "\xc4\xa0"
                 "a",
                 "\xc4\x8a",
                 "\xc3\xbf",
                 "no alphabet",
                 "<0x0A>"};
  gguf.tokenTypes = {3, 1, 1, 1, 1, 1, 1, 6};
  gguf.merges = {"\xc4\xa0 a"};
  gguf.eos = 1;
  return gguf;
}

static std::string
ggufError(const std::function<void(GgufTokenizer &)> &change) {
  GgufTokenizer gguf = ggufExample();
  change(gguf);
  std::string error;
  EXPECT_FALSE(tokenizerFromGguf(gguf, error));
  return error;
}

TEST(GgufImport, UndoesTheByteAlphabet) {
  std::string error;
  auto data = tokenizerFromGguf(ggufExample(), error);
  ASSERT_TRUE(data) << error;
  EXPECT_EQ(data->pre, "smollm");
  EXPECT_EQ(data->tokens,
            (std::vector<std::string>{"<|im_end|>", "a", " ", " a", "\n",
                                      "\xff", "no alphabet", "\n"}));
  EXPECT_EQ(data->kinds[6], TokenKind::Unused);
  EXPECT_EQ(data->kinds[7], TokenKind::Byte);
  EXPECT_EQ(data->merges, (std::vector<Merge>{{2, 1, 3}}));
  EXPECT_EQ(data->eos, 1);
  EXPECT_EQ(data->bos, -1);
  // A well-known end of turn counts even if eos is another.
  EXPECT_EQ(data->extraEnds, (std::vector<int32_t>{0}));
}

TEST(GgufImport, RefusesByName) {
  EXPECT_EQ(ggufError([](auto &g) { g.model = "bert"; }),
            "tokenizer.ggml.model: 'bert' is not supported; expected 'gpt2' "
            "(byte-level BPE), 'llama' (SentencePiece BPE) or 't5' (unigram)");
  EXPECT_EQ(ggufError([](auto &g) { g.pre = "tekken"; }),
            "tokenizer.ggml.pre: 'tekken' is not supported; expected 'gpt-2', "
            "'smollm', 'llama-bpe' or 'qwen2'");
  EXPECT_EQ(ggufError([](auto &g) { g.model = "llama"; }),
            "tokenizer.ggml.scores: expected 8 entries, one for each token, "
            "got 0");
  EXPECT_EQ(ggufError([](auto &g) {
              g.model = "t5";
              g.hasCharacterMap = true;
            }),
            "tokenizer.ggml.precompiled_charsmap: character maps are not "
            "supported");
  EXPECT_EQ(ggufError([](auto &g) {
              g.model = "t5";
              g.removeExtraSpaces = true;
            }),
            "tokenizer.ggml.remove_extra_whitespaces: true is not supported");
  EXPECT_EQ(ggufError([](auto &g) {
              g.model = "llama";
              g.scores.resize(8);
            }),
            "byte fallback: expected a token for each of the 256 bytes, found "
            "none for 0x00");
  EXPECT_EQ(ggufError([](auto &g) { g.tokenTypes.pop_back(); }),
            "tokenizer.ggml.token_type: expected 8 entries, one for each "
            "token, got 7");
  EXPECT_EQ(ggufError([](auto &g) { g.tokenTypes[1] = 7; }),
            "tokenizer.ggml.token_type: token 1: expected 1 to 6, got 7");
  EXPECT_EQ(ggufError([](auto &g) { g.tokens[4] = "a"; }),
            "tokenizer.ggml.tokens: tokens 1 and 4 are both written 'a'");
  EXPECT_EQ(ggufError([](auto &g) { g.tokens[7] = "<0xG1>"; }),
            "tokenizer.ggml.tokens: byte token 7: expected '<0xNN>', got "
            "'<0xG1>'");
  EXPECT_EQ(ggufError([](auto &g) { g.merges = {}; }),
            "tokenizer.ggml.merges: expected the merges of a byte-level BPE, "
            "got none");
  EXPECT_EQ(ggufError([](auto &g) { g.merges = {"a b"}; }),
            "tokenizer.ggml.merges: merge 0 ('a' 'b'): 'b' is not in the "
            "vocabulary");
  EXPECT_EQ(ggufError([](auto &g) { g.merges = {"a a"}; }),
            "tokenizer.ggml.merges: merge 0 ('a' 'a'): 'aa' is not in the "
            "vocabulary");
  EXPECT_EQ(ggufError([](auto &g) { g.merges = {"aa"}; }),
            "tokenizer.ggml.merges: merge 0: expected two tokens and one space "
            "between them, got 'aa'");
  EXPECT_EQ(ggufError([](auto &g) { g.eos = 1ll << 33; }),
            "tokenizer.ggml.eos_token_id: expected an id below 8, got "
            "8589934592");
  EXPECT_EQ(ggufError([](auto &g) { g.tokens = {}, g.tokenTypes = {}; }),
            "tokenizer.ggml.merges: merge 0 ('\xc4\xa0' 'a'): '\xc4\xa0' is "
            "not in the vocabulary");
}

TEST(GgufImport, ReadsSentencePiece) {
  GgufTokenizer gguf;
  gguf.model = "llama";
  gguf.tokens = {"<unk>",
                 "<s>",
                 "</s>",
                 "\xe2\x96\x81",
                 "a",
                 "\xe2\x96\x81"
                 "a",
                 "\xe2\x96\x81\xe2\x96\x81"};
  gguf.tokenTypes = {2, 3, 3, 1, 1, 1, 4};
  gguf.scores = {0, 0, 0, -3, -2, -1, 0};
  gguf.bos = 1;
  gguf.eos = 2;
  std::string error;
  auto data = tokenizerFromGguf(gguf, error);
  ASSERT_TRUE(data) << error;
  EXPECT_EQ(data->model, "sentencepiece-bpe");
  EXPECT_EQ(data->tokens, (std::vector<std::string>{"<unk>", "<s>", "</s>", " ",
                                                    "a", " a", "  "}));
  EXPECT_EQ(data->unk, 0);
  // What llama.cpp takes absent keys for.
  EXPECT_TRUE(data->addBos);
  EXPECT_FALSE(data->addEos);
  EXPECT_EQ(data->spacePrefix, SpacePrefix::EachSection);
  EXPECT_FALSE(data->byteFallback);
  auto tokenizer = Tokenizer::create(*data, error);
  EXPECT_EQ(*tokenizer->encodePrompt("a  a", error),
            (std::vector<int32_t>{1, 5, 6, 5}));
  gguf.model = "t5";
  gguf.addSpacePrefix = false;
  data = tokenizerFromGguf(gguf, error);
  ASSERT_TRUE(data) << error;
  EXPECT_EQ(data->model, "unigram");
  EXPECT_FALSE(data->addBos);
  EXPECT_TRUE(data->addEos);
  EXPECT_EQ(data->spacePrefix, SpacePrefix::None);
  gguf.addBos = true;
  gguf.addEos = false;
  gguf.unk = 4;
  data = tokenizerFromGguf(gguf, error);
  EXPECT_TRUE(data->addBos);
  EXPECT_FALSE(data->addEos);
  EXPECT_EQ(data->unk, 4);
  EXPECT_TRUE(data->strips.empty());
  gguf.architecture = "phi3";
  gguf.tokens[0] = "<|user|>";
  data = tokenizerFromGguf(gguf, error);
  EXPECT_EQ(data->strips,
            (std::vector<uint8_t>{stripRight, 0, stripRight, 0, 0, 0, 0}));
  gguf.unk = 7;
  EXPECT_FALSE(tokenizerFromGguf(gguf, error));
  EXPECT_EQ(error, "tokenizer.ggml.unknown_token_id: expected an id below 7, "
                   "got 7");
}

TEST(StrictJson, RefusesDuplicatesDepthAndRubbish) {
  std::string error;
  EXPECT_FALSE(
      tokenizerFromHuggingFace(R"({"a": {"b": 1, "b": 2}})", "", error));
  EXPECT_EQ(error, "tokenizer.json: duplicate key 'b'");
  EXPECT_FALSE(tokenizerFromHuggingFace(std::string(100000, '['), "", error));
  std::string deep = std::string(100, '[') + std::string(100, ']');
  EXPECT_FALSE(tokenizerFromHuggingFace(deep, "", error));
  EXPECT_EQ(error, "tokenizer.json: more than 64 nested levels");
  for (std::string_view bad : {"", "{", "{\"a\": \"\xff\"}", "nul", "[]x"})
    EXPECT_FALSE(tokenizerFromHuggingFace(bad, "", error)) << bad;
}

//===----------------------------------------------------------------------===//
// vocab.json and merges.txt
//===----------------------------------------------------------------------===//

TEST(Gpt2Import, ReadsBothFiles) {
  std::string error;
  auto data =
      tokenizerFromGpt2Files(R"({"a": 1, "b": 0, "ab": 2, "<|endoftext|>": 3})",
                             "#version: 0.2\r\na b\r\n\r\n", error);
  ASSERT_TRUE(data) << error;
  EXPECT_EQ(data->merges, (std::vector<Merge>{{1, 0, 2}}));
  EXPECT_EQ(data->eos, 3);
  EXPECT_EQ(data->bos, 3);
  EXPECT_EQ(data->kinds[3], TokenKind::Control);
  EXPECT_FALSE(data->addBos);
}

TEST(Gpt2Import, Refuses) {
  std::string error;
  EXPECT_FALSE(tokenizerFromGpt2Files("[1]", "", error));
  EXPECT_FALSE(tokenizerFromGpt2Files(R"({"a": 0, "b": 2})", "", error));
  EXPECT_EQ(error, "vocab.json: token 'b': expected an id of its own below 2, "
                   "got 2");
  EXPECT_FALSE(tokenizerFromGpt2Files(R"({"a": 0, "b": 0})", "", error));
  EXPECT_FALSE(tokenizerFromGpt2Files(R"({"a": 0, "a": 1})", "", error));
  EXPECT_FALSE(tokenizerFromGpt2Files(R"({"a": 0})", "a a", error));
  EXPECT_EQ(error, "merges.txt: merge 0 ('a' 'a'): 'aa' is not in the "
                   "vocabulary");
}

/// Hundreds of thousands of members, as of added tokens, in a moment.
TEST(StrictJson, TimeIsLinearInElements) {
  std::string list = "[{}";
  for (int i = 0; i < 400000; ++i)
    list += ",{}";
  list += "]";
  std::string error;
  auto begin = std::chrono::steady_clock::now();
  auto value = parseStrictJson(list, "list", error);
  auto taken = std::chrono::steady_clock::now() - begin;
  ASSERT_TRUE(value) << error;
  EXPECT_EQ(value->size(), 400001u);
  EXPECT_LT(taken, std::chrono::seconds(10));
}

TEST(StrictJson, Refusals) {
  std::string error;
  for (const auto &[text, rule] :
       {std::pair<std::string, std::string>{R"({"a": 1, "a": 2})",
                                            "duplicate key 'a'"},
        {R"([{"b": [{"a": 1, "a": 2}]}])", "duplicate key 'a'"},
        {std::string(65, '[') + std::string(65, ']'), "64 nested levels"},
        {std::string(100000, '['), "64 nested levels"},
        {"[1e999]", "number overflow"},
        {"[1] 2", "end of input"},
        {"\"\xff\"", "UTF-8"}}) {
    EXPECT_FALSE(parseStrictJson(text, "file", error)) << text.substr(0, 80);
    EXPECT_NE(error.find(rule), std::string::npos) << error;
    EXPECT_EQ(error.find("file: "), 0u) << error;
    EXPECT_EQ(error.find("exception"), std::string::npos) << error;
  }
  EXPECT_TRUE(parseStrictJson(std::string(64, '[') + std::string(64, ']'),
                              "file", error));
  EXPECT_TRUE(parseStrictJson(R"([{"a": 1}, {"a": 2}])", "file", error));
}
