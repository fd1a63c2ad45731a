//===- TokenizerTest.cpp - Merging, special tokens, streams, speed --------===//
#include "TextFixtures.h"
#include <ctime>
#include <gtest/gtest.h>

using namespace gptc::text;
using namespace gptc::text::test;

using Ids = std::vector<int32_t>;

static Ids encode(const Tokenizer &tokenizer, std::string_view text,
                  bool special = false) {
  std::string error;
  auto ids = tokenizer.encode(text, special, error);
  EXPECT_TRUE(ids) << error;
  return ids ? *ids : Ids();
}

TEST(Tokenizer, LowestRankFirstThenLeftmost) {
  // Rank 0 "bc" goes before "ab" although "ab" is further left.
  Tokenizer byRank = tinyTokenizer({{"b", "c"}, {"a", "b"}});
  EXPECT_EQ(encode(byRank, "abc"), (Ids{'a', 256}));
  // Overlapping pairs of one rank: from the left.
  Tokenizer byPlace = tinyTokenizer({{"a", "a"}});
  EXPECT_EQ(encode(byPlace, "aaaaa"), (Ids{256, 256, 'a'}));
  // "ab" is made after "bc" would have taken the b; stale pairs are dropped.
  Tokenizer stale = tinyTokenizer({{"a", "b"}, {"b", "c"}, {"ab", "c"}});
  EXPECT_EQ(encode(stale, "abcbc"), (Ids{258, 257}));
}

TEST(Tokenizer, PieceThatIsATokenIsTakenWholeOnRequest) {
  TokenizerData data = tinyData({{"b", "c"}, {"a", "b"}});
  data.tokens[257] = "abc"; // reached by no merge
  data.merges.pop_back();
  std::string error;
  EXPECT_EQ(encode(*Tokenizer::create(data, error), "abc"), (Ids{'a', 256}));
  data.ignoreMerges = true;
  EXPECT_EQ(encode(*Tokenizer::create(data, error), "abc"), (Ids{257}));
}

TEST(Tokenizer, SpecialTokens) {
  Tokenizer tokenizer = tinyTokenizer({});
  EXPECT_EQ(encode(tokenizer, "a<|end|>b", true), (Ids{'a', 256, 'b'}));
  EXPECT_EQ(encode(tokenizer, "a<|end|>b", false).size(), 9u);
  EXPECT_EQ(encode(tokenizer, "<|end<|end|>", true),
            (Ids{'<', '|', 'e', 'n', 'd', 256}));
  // User-defined ones are matched always.
  EXPECT_EQ(encode(tokenizer, "x[[u]]<|end|>", false).size(), 9u);
  EXPECT_EQ(encode(tokenizer, "x[[u]]y", false), (Ids{'x', 259, 'y'}));
  EXPECT_EQ(tokenizer.specialId("<|im_end|>"), 258);
  EXPECT_EQ(tokenizer.specialId("<|im_end|>x"), -1);
  EXPECT_EQ(tokenizer.specialId(""), -1);
  EXPECT_TRUE(tokenizer.isSpecial(256));
  EXPECT_FALSE(tokenizer.isSpecial(259));
  EXPECT_TRUE(tokenizer.isEndOfGeneration(256));
  EXPECT_FALSE(tokenizer.isEndOfGeneration(-1));
  EXPECT_FALSE(tokenizer.isEndOfGeneration(257));
}

TEST(Tokenizer, LongestSpecialTokenWins) {
  TokenizerData data = tinyData({});
  for (const char *text : {"<a>", "<a><b>"}) {
    data.tokens.push_back(text);
    data.kinds.push_back(TokenKind::Control);
  }
  std::string error;
  auto tokenizer = Tokenizer::create(data, error);
  EXPECT_EQ(encode(*tokenizer, "<a><a><b><b>", true),
            (Ids{260, 261, '<', 'b', '>'}));
}

TEST(Tokenizer, PromptStartsWithBosWhereWanted) {
  TokenizerData data = tinyData({});
  std::string error;
  EXPECT_EQ(*Tokenizer::create(data, error)->encodePrompt("a", error),
            (Ids{'a'}));
  data.bos = 257;
  data.addBos = true;
  EXPECT_EQ(*Tokenizer::create(data, error)->encodePrompt("a", error),
            (Ids{257, 'a'}));
}

TEST(Tokenizer, DecodeToleratesForeignIds) {
  Tokenizer tokenizer = tinyTokenizer({});
  EXPECT_EQ(tokenizer.decode(Ids{'a', -1, 1 << 30, 256, 'b'}), "a<|end|>b");
  EXPECT_EQ(tokenizer.decode(Ids{'a', 256, 'b'}, /*skipSpecial=*/true), "ab");
}

TEST(Tokenizer, MissingByteIsNamed) {
  TokenizerData data = tinyData({});
  data.kinds['z'] = TokenKind::Unused;
  std::string error;
  auto tokenizer = Tokenizer::create(data, error);
  EXPECT_FALSE(tokenizer->encode("1<|end|>z", true, error));
  EXPECT_EQ(error, "text at byte 8: the vocabulary has no token for the byte "
                   "0x7a; remove it from the text");
}

TEST(Tokenizer, RandomBytesComeBack) {
  SplitMix64 random(7);
  for (const char *pre : {"gpt2", "smollm", "llama3"}) {
    Tokenizer tokenizer =
        tinyTokenizer({{" ", " "}, {"  ", "  "}, {"a", "b"}}, pre);
    for (int round = 0; round < 300; ++round) {
      std::string text;
      size_t length = random.next() % 60;
      // Half of the rounds from few characters, to have runs and valid UTF-8.
      static constexpr std::string_view few[] = {
          " ", "\n", "a", "b", "1", "'", "s", "\xc3\xa9", "\xe2\x82", "!"};
      while (text.size() < length)
        if (round % 2)
          text += few[random.next() % std::size(few)];
        else
          text.push_back(char(random.next()));
      EXPECT_EQ(tokenizer.decode(encode(tokenizer, text)), text);
    }
  }
}

TEST(Tokenizer, LongRunsTakeLinearTime) {
  constexpr size_t length = 1 << 20;
  std::vector<std::pair<std::string, std::string>> merges;
  for (std::string c : {"a", " "})
    for (std::string run = c; run.size() < 64; run += run)
      merges.push_back({run, run});
  for (const char *pre : {"gpt2", "smollm", "llama3"}) {
    Tokenizer tokenizer = tinyTokenizer(merges, pre);
    for (std::string_view unit : {"a", " ", "1", "!", "\n", "\xff", "<|en"}) {
      std::string text;
      while (text.size() < length)
        text += unit;
      std::clock_t start = std::clock(); // of the CPU, whatever else runs
      auto ids = encode(tokenizer, text, true);
      double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
      EXPECT_EQ(tokenizer.decode(ids), text);
      // Quadratic time would be hours.
      EXPECT_LT(seconds, 10) << pre << " '" << unit << "'";
    }
  }
}

TEST(StreamDecoder, HoldsBackIncompleteCharacters) {
  Tokenizer tokenizer = tinyTokenizer({});
  StreamDecoder stream(tokenizer);
  EXPECT_EQ(stream.push('a'), "a");
  EXPECT_EQ(stream.push(0xe2), "");
  EXPECT_EQ(stream.push(0x82), "");
  EXPECT_EQ(stream.push(0xac), "\xe2\x82\xac");
  // Control tokens are left out and do not disturb a character.
  EXPECT_EQ(stream.push(0xc3), "");
  EXPECT_EQ(stream.push(256), "");
  EXPECT_EQ(stream.push(0xa9), "\xc3\xa9");
  // No continuation: the bytes come out unchanged.
  EXPECT_EQ(stream.push(0xf0), "");
  EXPECT_EQ(stream.push('x'), "\xf0x");
  EXPECT_EQ(stream.push(0xff), "\xff");
  EXPECT_EQ(stream.push(0xf0), "");
  EXPECT_EQ(stream.push(0x9f), "");
  EXPECT_EQ(stream.finish(), "\xf0\x9f");
  EXPECT_EQ(stream.finish(), "");
  StreamDecoder verbatim(tokenizer, /*skipSpecial=*/false);
  EXPECT_EQ(verbatim.push(256), "<|end|>");
}
