//===- TokenizerTest.cpp - Merging, special tokens, streams, speed --------===//
#include "TextFixtures.h"
#include <cstdlib>
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
  for (const char *pre : {"gpt2", "smollm", "llama3", "qwen2"}) {
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

/// The same vocabulary for the SentencePiece models, every byte a byte token
/// and every character of one byte a token.
static Tokenizer sentencePiece(TokenizerData data, const std::string &model) {
  data.pre = "";
  data.model = model;
  data.byteFallback = true;
  data.spacePrefix = SpacePrefix::EachSection;
  if (model != "sentencepiece-bpe" || data.ignoreMerges) {
    data.merges.clear();
    for (const std::string &token : data.tokens)
      data.scores.push_back(-10.0f / float(1 + token.size()));
  }
  data.ignoreMerges = false;
  for (int byte = 0; byte < 256; ++byte) {
    data.tokens.emplace_back(1, char(byte));
    data.kinds.push_back(TokenKind::Byte);
    if (!data.scores.empty())
      data.scores.push_back(0);
    if (byte >= 128) // no character
      data.kinds[byte] = TokenKind::Unused;
  }
  std::string error;
  auto tokenizer = Tokenizer::create(std::move(data), error);
  EXPECT_TRUE(tokenizer) << error;
  return std::move(*tokenizer);
}

TEST(Tokenizer, LongRunsTakeLinearTime) {
  // Sanitizers multiply the time, not its growth.
  const size_t length = std::getenv("GPTC_SANITIZER") ? 1 << 17 : 1 << 20;
  std::vector<std::pair<std::string, std::string>> merges;
  for (std::string c : {"a", " "})
    for (std::string run = c; run.size() < 64; run += run)
      merges.push_back({run, run});
  std::vector<std::pair<std::string, Tokenizer>> tokenizers;
  for (const char *pre : {"gpt2", "smollm", "llama3", "qwen2"})
    tokenizers.emplace_back(pre, tinyTokenizer(merges, pre));
  TokenizerData data = tinyData(merges);
  tokenizers.emplace_back("merges", sentencePiece(data, "sentencepiece-bpe"));
  tokenizers.emplace_back("unigram", sentencePiece(data, "unigram"));
  data.ignoreMerges = true;
  tokenizers.emplace_back("scores", sentencePiece(data, "sentencepiece-bpe"));
  for (const auto &[name, tokenizer] : tokenizers)
    for (std::string_view unit : {"a", " ", "1", "!", "\n", "\xff", "<|en",
                                  "\xcc\x81", "\xe2\x96\x81", " \n"}) {
      std::string text;
      while (text.size() < length)
        text += unit;
      std::clock_t start = std::clock(); // of the CPU, whatever else runs
      auto ids = encode(tokenizer, text, true);
      double seconds = double(std::clock() - start) / CLOCKS_PER_SEC;
      if (unit != "\xe2\x96\x81")
        EXPECT_EQ(tokenizer.decode(ids), text) << name;
      // Quadratic time would be hours.
      EXPECT_LT(seconds, 10) << name << " '" << unit << "'";
    }
}

TEST(Tokenizer, SpecialTokensSwallowSpace) {
  TokenizerData data = tinyData({});
  data.strips.resize(data.tokens.size());
  data.strips[256] = stripLeft;              // <|end|>
  data.strips[257] = stripRight;             // <|im_start|>
  data.strips[258] = stripLeft | stripRight; // <|im_end|>
  std::string error;
  auto tokenizer = Tokenizer::create(data, error);
  EXPECT_EQ(encode(*tokenizer, "a \t<|end|> b", true),
            (Ids{'a', 256, ' ', 'b'}));
  EXPECT_EQ(encode(*tokenizer, " <|im_start|>\n\xc2\xa0 b", true),
            (Ids{' ', 257, 'b'}));
  EXPECT_EQ(encode(*tokenizer, " <|im_end|> <|im_end|>  ", true),
            (Ids{258, 258}));
  EXPECT_EQ(encode(*tokenizer, " <|end|>", false).size(), 8u);
  EXPECT_FALSE(tokenizer->isLossless());
}

TEST(Tokenizer, SpacesInFront) {
  std::string error;
  struct Case {
    SpacePrefix rule;
    std::string_view text, seen; // as bytes of the tokens
  };
  for (auto [rule, text, seen] :
       {Case{SpacePrefix::None, "a<|end|>b", "a<|end|>b"},
        Case{SpacePrefix::EachSection, "a<|end|> b", " a<|end|>  b"},
        Case{SpacePrefix::EachSection, "<|end|>", "<|end|>"},
        Case{SpacePrefix::EachUnlessSpace, "a<|end|> b", " a<|end|> b"},
        Case{SpacePrefix::FirstUnlessSpace, "a<|end|>b", " a<|end|>b"},
        Case{SpacePrefix::FirstUnlessSpace, " a<|end|>b", " a<|end|>b"},
        Case{SpacePrefix::FirstUnlessSpace, "<|end|>b", "<|end|>b"},
        Case{SpacePrefix::None,
             "\xe2\x96\x81"
             "a",
             " a"}}) {
    TokenizerData data = tinyData({});
    data.model = "sentencepiece-bpe";
    data.pre = "";
    data.spacePrefix = rule;
    auto tokenizer = Tokenizer::create(data, error);
    std::string bytes;
    for (int32_t id : encode(*tokenizer, text, true))
      bytes += tokenizer->tokenBytes(id);
    EXPECT_EQ(bytes, seen);
  }
}

TEST(Tokenizer, CharactersWithoutAToken) {
  TokenizerData data = tinyData({});
  data.model = "sentencepiece-bpe";
  data.pre = "";
  data.kinds['y'] = data.kinds['z'] = TokenKind::Unused;
  std::string error;
  auto tokenizer = Tokenizer::create(data, error);
  EXPECT_FALSE(tokenizer->encode("az", false, error));
  EXPECT_EQ(error, "text: the vocabulary has no token for U+007A, no byte "
                   "tokens and no unknown token; remove it from the text");
  EXPECT_FALSE(tokenizer->isLossless());
  data.unk = '?';
  tokenizer = Tokenizer::create(data, error);
  EXPECT_EQ(encode(*tokenizer, "zyaz"), (Ids{'?', '?', 'a', '?'}));
  data.fuseUnk = true;
  tokenizer = Tokenizer::create(data, error);
  EXPECT_EQ(encode(*tokenizer, "zyaz\xf0\x9f\x98\x80"), (Ids{'?', 'a', '?'}));
}

TEST(Tokenizer, ScoresOrderMerges) {
  TokenizerData data = tinyData({{"a", "b"}, {"b", "c"}, {"c", "d"}});
  data.model = "sentencepiece-bpe";
  data.pre = "";
  data.merges.clear();
  data.scores.assign(data.tokens.size(), 0);
  int32_t ab = 256, bc = 257, cd = 258;
  std::string error;
  auto idsWith = [&](float scoreOfAb, float scoreOfBc, float scoreOfCd) {
    data.scores[ab] = scoreOfAb;
    data.scores[bc] = scoreOfBc;
    data.scores[cd] = scoreOfCd;
    return encode(*Tokenizer::create(data, error), "abcd");
  };
  EXPECT_EQ(idsWith(1, 2, 1), (Ids{'a', bc, 'd'}));
  EXPECT_EQ(idsWith(-1, 2, 3), (Ids{ab, cd}));
  EXPECT_EQ(idsWith(-3, -2, -5), (Ids{'a', bc, 'd'}));
  EXPECT_EQ(idsWith(0, -0.5f, -9), (Ids{ab, cd}));
  EXPECT_EQ(idsWith(7, 7, 7), (Ids{ab, cd})); // leftmost on ties
  EXPECT_EQ(idsWith(-0.0f, 0, -1), (Ids{ab, cd}));
}

TEST(Tokenizer, PiecesBeginAtSpaces) {
  TokenizerData data = tinyData({{" ", "a"}, {" a", " "}, {" ", " "}});
  data.model = "sentencepiece-bpe";
  data.pre = "";
  std::string error;
  EXPECT_EQ(encode(*Tokenizer::create(data, error), " a  a"), (Ids{257, 256}));
  data.splitAtSpaces = true;
  EXPECT_EQ(encode(*Tokenizer::create(data, error), " a  a"),
            (Ids{256, ' ', 256}));
}

TEST(Tokenizer, UnigramTakesTheLikeliestCut) {
  TokenizerData data;
  data.model = "unigram";
  data.tokens = {"<unk>", "a", "aa", "xyz", "yz"};
  data.kinds.assign(5, TokenKind::Normal);
  data.kinds[0] = TokenKind::Control;
  data.scores = {0, -1, -2, -12, 1};
  data.unk = 0;
  std::string error;
  auto tokenizer = Tokenizer::create(data, error);
  ASSERT_TRUE(tokenizer) << error;
  // Of equal sums the one that was there first, as in the references.
  EXPECT_EQ(encode(*tokenizer, "aa"), (Ids{2}));
  EXPECT_EQ(encode(*tokenizer, "aaa"), (Ids{1, 2}));
  // Passing a character over costs 10 more than the worst token.
  EXPECT_EQ(encode(*tokenizer, "xyz"), (Ids{3}));
  data.scores[4] = 11;
  tokenizer = Tokenizer::create(data, error);
  EXPECT_EQ(encode(*tokenizer, "xyz"), (Ids{0, 4}));
}

TEST(Tokenizer, PartsAreOneText) {
  Tokenizer tokenizer = tinyTokenizer({{"a", "b"}});
  std::string error;
  auto parts = [&](std::vector<TextPart> parts) {
    return *tokenizer.encode(parts, error);
  };
  EXPECT_EQ(parts({{"a", true}, {"b", false}}), (Ids{256}));
  int32_t end = tokenizer.specialId("<|end|>");
  EXPECT_EQ(parts({{"<|e", true}, {"nd|>", true}}), (Ids{end}));
  EXPECT_EQ(parts({{"<|e", true}, {"nd|>", false}}).size(), 7u);
  EXPECT_EQ(parts({{"<|e", false}, {"nd|>", true}}).size(), 7u);
  EXPECT_EQ(parts({{"", true}, {"<|end|>", true}, {"", false}, {"a", true}}),
            (Ids{end, 'a'}));
  EXPECT_EQ(parts({}), (Ids{}));
}

TEST(Tokenizer, NormalFormC) {
  TokenizerData data = tinyData({});
  data.nfc = true;
  std::string error;
  auto tokenizer = Tokenizer::create(data, error);
  // Composed, reordered, Hangul, a singleton, an exclusion, bytes of no
  // character in between (Unicode's NormalizationTest has more).
  for (auto [text, normal] : std::vector<std::pair<std::string, std::string>>{
           {"e\xcc\x81", "\xc3\xa9"},
           {"a\xcc\x87\xcc\xa3", "\xe1\xba\xa1\xcc\x87"},
           {"\xe1\x84\x92\xe1\x85\xa1\xe1\x86\xab", "\xed\x95\x9c"},
           {"\xe2\x84\xab", "\xc3\x85"},
           {"\xe0\xa5\x98", "\xe0\xa4\x95\xe0\xa4\xbc"},
           // A mark of the same class stands between.
           {"a\xcc\x8d\xcc\x81", "a\xcc\x8d\xcc\x81"},
           {"e\xff\xcc\x81", "e\xff\xcc\x81"}})
    EXPECT_EQ(tokenizer->decode(encode(*tokenizer, text)), normal) << text;
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
