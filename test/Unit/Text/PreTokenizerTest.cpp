//===- PreTokenizerTest.cpp - Pieces of text ------------------------------===//
//
// Expected pieces are those of Hugging Face's tokenizers 0.23.
//
//===----------------------------------------------------------------------===//
#include "PreTokenizer.h"
#include <gtest/gtest.h>
#include <vector>

using namespace gptc::text;

using Pieces = std::vector<std::string>;

static Pieces cut(std::string_view name, std::string_view text) {
  std::string error;
  auto pre = PreTokenizer::create(name, error);
  EXPECT_TRUE(pre) << error;
  Pieces pieces;
  bool done = pre->cut(
      text,
      [&](std::string_view piece) {
        pieces.emplace_back(piece);
        return true;
      },
      error);
  EXPECT_TRUE(done) << error;
  return pieces;
}

TEST(PreTokenizer, Gpt2) {
  EXPECT_EQ(cut("gpt2", ""), (Pieces{}));
  EXPECT_EQ(cut("gpt2", "I'll  pay 12.50\xe2\x82\xac, it's\n\n ok  "),
            (Pieces{"I", "'ll", " ", " pay", " 12", ".", "50", "\xe2\x82\xac,",
                    " it", "'s", "\n\n", " ok", "  "}));
  EXPECT_EQ(cut("gpt2", "IT'S"), (Pieces{"IT", "'", "S"}));
}

TEST(PreTokenizer, SmollmCutsDigitsFirst) {
  EXPECT_EQ(cut("smollm", "a  12 b"), (Pieces{"a", "  ", "1", "2", " b"}));
  // U+00BD is numeric, too.
  EXPECT_EQ(cut("smollm", "x\xc2\xbdy"), (Pieces{"x", "\xc2\xbd", "y"}));
}

TEST(PreTokenizer, Llama3) {
  EXPECT_EQ(cut("llama3", "Don'T 12345 (foo)\r\n\n  bar  "),
            (Pieces{"Don", "'T", " ", "123", "45", " (", "foo", ")\r\n\n", " ",
                    " bar", "  "}));
}

TEST(PreTokenizer, Qwen2) {
  EXPECT_EQ(cut("qwen2", "Don'T 123 (foo)\r\n\n  bar  "),
            (Pieces{"Don", "'T", " ", "1", "2", "3", " (", "foo", ")\r\n\n",
                    " ", " bar", "  "}));
}

TEST(PreTokenizer, InvalidBytesAreSymbols) {
  EXPECT_EQ(cut("gpt2", "ab\xff\x80 c"), (Pieces{"ab", "\xff\x80", " c"}));
  EXPECT_EQ(cut("gpt2", "a\xe2\x82"), (Pieces{"a", "\xe2\x82"}));
  // An encoded surrogate is three invalid bytes.
  EXPECT_EQ(cut("gpt2", " \xed\xa0\x80!"), (Pieces{" \xed\xa0\x80!"}));
}

TEST(PreTokenizer, MongolianVowelSeparatorIsNoSpace) {
  // White space for PCRE2, not for Unicode.
  EXPECT_EQ(cut("gpt2", "a\xe1\xa0\x8e b"),
            (Pieces{"a", "\xe1\xa0\x8e", " b"}));
}

TEST(PreTokenizer, CallerMayStop) {
  std::string error;
  int calls = 0;
  auto stop = [&](std::string_view) { return ++calls < 2; };
  for (const char *name : {"gpt2", "smollm"}) {
    calls = 0;
    EXPECT_FALSE(
        PreTokenizer::create(name, error)->cut("a b 1 2", stop, error));
    EXPECT_EQ(calls, 2);
  }
  EXPECT_FALSE(PreTokenizer::create("bert", error));
  EXPECT_EQ(error, "pre-tokenizer 'bert' is not supported");
}
