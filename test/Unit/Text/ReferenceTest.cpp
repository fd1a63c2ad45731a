//===- ReferenceTest.cpp - Ids against the reference implementations ------===//
//
// Inputs/expected.json holds what Hugging Face's tokenizers, llama.cpp and
// SentencePiece give for the tiny tokenizers beside it; make_tokenizers.py
// wrote all of them and says which reference stands for which.
//
//===----------------------------------------------------------------------===//
#include "TextFixtures.h"
#include <gtest/gtest.h>

using namespace gptc::text;
using namespace gptc::text::test;

using Ids = std::vector<int32_t>;

static std::string input(const std::string &name) {
  return std::string(GPTC_TEXT_INPUTS) + "/" + name;
}

static const nlohmann::json &expected() {
  static const auto file =
      nlohmann::json::parse(readFile(input("expected.json")));
  return file;
}

static std::optional<Tokenizer> load(const std::string &name) {
  std::string error, json = readFile(input(name + ".json"));
  auto data = json.empty()
                  ? tokenizerDataFromGgufFile(input(name + ".gguf"), error)
                  : tokenizerFromHuggingFace(json, "", error);
  EXPECT_TRUE(data) << name << ": " << error;
  if (!data)
    return std::nullopt;
  // By way of the package's file, which must keep everything.
  auto kept = parse(serialize(*data), error);
  EXPECT_TRUE(kept && *kept == *data) << name << ": " << error;
  return Tokenizer::create(std::move(*kept), error);
}

/// As in make_tokenizers.py.
static std::vector<std::string> randomTexts(size_t count, uint64_t seed) {
  SplitMix64 random(seed);
  std::vector<std::string> pieces = expected()["pieces"], texts;
  while (texts.size() < count) {
    std::string &text = texts.emplace_back();
    for (uint64_t left = 1 + random.next() % 12; left > 0; --left)
      text += pieces[random.next() % pieces.size()];
  }
  return texts;
}

static uint32_t checksum(const Ids &ids) {
  uint32_t value = 0x811c9dc5;
  for (int32_t id : ids)
    for (int shift = 0; shift < 32; shift += 8)
      value = (value ^ (uint32_t(id) >> shift & 0xff)) * 0x01000193;
  return value;
}

static void expectReference(const std::string &name) {
  SCOPED_TRACE(name);
  auto tokenizer = load(name);
  ASSERT_TRUE(tokenizer);
  const auto &cases = expected()[name];
  std::string error;
  for (const auto &example : cases["examples"]) {
    auto ids = tokenizer->encode(example[0].get<std::string>(),
                                 example[1].get<bool>(), error);
    ASSERT_TRUE(ids) << error;
    EXPECT_EQ(*ids, example[2].get<Ids>()) << example.dump();
  }
  std::string sums = cases["checksums"];
  auto texts = randomTexts(1000, 11);
  ASSERT_EQ(sums.size(), 8 * texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    auto ids = tokenizer->encode(texts[i], cases["special"].get<bool>(), error);
    ASSERT_TRUE(ids) << error;
    EXPECT_EQ(checksum(*ids), std::stoul(sums.substr(8 * i, 8), nullptr, 16))
        << nlohmann::json(texts[i]).dump() << nlohmann::json(*ids).dump();
  }
}

TEST(Reference, HuggingFaceSentencePieceBpe) {
  for (const char *name :
       {"llama", "gemma", "metaspace-first", "metaspace-always"})
    expectReference(name);
}

TEST(Reference, HuggingFaceUnigram) { expectReference("unigram"); }

TEST(Reference, HuggingFaceByteLevel) {
  expectReference("llama3");
  expectReference("qwen2");
}

TEST(Reference, LlamaCppSentencePieceBpe) { expectReference("spm-bytes"); }

TEST(Reference, SentencePieceUnigram) { expectReference("spm-unigram"); }

/// Random bytes, and bytes of few kinds, which make runs and characters.
static std::string randomBytes(SplitMix64 &random, bool any) {
  static constexpr std::string_view few[] = {
      " ",        "\n",    "a",     "the", "1",  "\xc3\xa9",
      "\xe2\x82", "[[u]]", "<|x|>", "!",   "<s>"};
  std::string text;
  for (uint64_t left = random.next() % 40; left > 0; --left)
    if (any)
      text.push_back(char(random.next()));
    else
      text += few[random.next() % std::size(few)];
  return text;
}

TEST(Reference, DecodingGivesTheBytesBack) {
  size_t lossless = 0;
  for (const char *name : {"llama", "gemma", "spm-bytes", "llama3", "qwen2",
                           "metaspace-first", "unigram"}) {
    auto tokenizer = load(name);
    ASSERT_TRUE(tokenizer) << name;
    if (!tokenizer->isLossless())
      continue;
    ++lossless;
    SplitMix64 random(5);
    for (int round = 0; round < 2000; ++round) {
      std::string text = randomBytes(random, round % 2), error;
      for (bool special : {false, true}) {
        auto ids = tokenizer->encode(text, special, error);
        ASSERT_TRUE(ids) << error;
        EXPECT_EQ(tokenizer->decode(*ids), text) << name;
        StreamDecoder stream(*tokenizer, /*skipSpecial=*/false,
                             /*fromStart=*/true);
        std::string streamed;
        for (int32_t id : *ids)
          streamed += stream.push(id);
        EXPECT_EQ(streamed + stream.finish(), text) << name;
      }
    }
  }
  EXPECT_EQ(lossless, 3u); // llama, gemma, spm-bytes
}
