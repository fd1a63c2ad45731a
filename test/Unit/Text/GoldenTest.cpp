//===- GoldenTest.cpp - Token ids against the reference tokenizers --------===//
//
// The ids in test/Golden come from Hugging Face's tokenizers and tiktoken.
//
//===----------------------------------------------------------------------===//
#include "TextFixtures.h"
#include <gtest/gtest.h>

using namespace gptc::text;
using namespace gptc::text::test;

static std::string textOf(const nlohmann::json &entry) {
  if (!entry.contains("hex"))
    return entry["text"];
  std::string hex = entry["hex"], bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(char(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

static void expectEntry(const Tokenizer &tokenizer, const nlohmann::json &entry,
                        bool parseSpecial) {
  std::string error, text = textOf(entry);
  auto ids = tokenizer.encode(text, parseSpecial, error);
  ASSERT_TRUE(ids) << error << " in " << entry.dump();
  EXPECT_EQ(*ids, entry["ids"].get<std::vector<int32_t>>()) << entry.dump();
  EXPECT_EQ(tokenizer.decode(*ids), text);
}

static void expectAll(const Tokenizer &tokenizer, const std::string &file) {
  auto cases = golden(file);
  ASSERT_TRUE(cases.is_object()) << file;
  ASSERT_GT(cases["entries"].size(), 50u);
  for (const auto &entry : cases["entries"])
    expectEntry(tokenizer, entry, entry["parse_special"]);
  // The file form must not change anything.
  std::string error;
  auto copy = parse(serialize(tokenizer.data()), error);
  ASSERT_TRUE(copy) << error;
  EXPECT_TRUE(*copy == tokenizer.data());
}

TEST(Golden, Gpt2) {
  auto tokenizer = gpt2Tokenizer();
  if (!tokenizer)
    GTEST_SKIP() << "GPTC_GPT2_VOCAB_DIR is not set";
  EXPECT_EQ(tokenizer->vocabularySize(), 50257);
  EXPECT_TRUE(tokenizer->isEndOfGeneration(50256));
  EXPECT_TRUE(tokenizer->isSpecial(50256));
  expectAll(*tokenizer, "tokenizer/gpt2.json");
}

/// Texts on which other programs were reported to differ from the reference
/// (llama.cpp 3502, 6809, 7530, 8691, 11729; minGPT 140).
TEST(Golden, Gpt2EdgeTexts) {
  auto tokenizer = gpt2Tokenizer();
  if (!tokenizer)
    GTEST_SKIP() << "GPTC_GPT2_VOCAB_DIR is not set";
  std::string error;
  auto ids = [&](std::string_view text, bool special = false) {
    auto encoded = tokenizer->encode(text, special, error);
    EXPECT_TRUE(encoded) << error;
    EXPECT_EQ(tokenizer->decode(*encoded), text);
    return *encoded;
  };
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(ids("Hello world"), (Ids{15496, 995}));
  EXPECT_EQ(ids("a\n\nb"), (Ids{64, 198, 198, 65}));
  EXPECT_EQ(ids("a\n\n"), (Ids{64, 628}));
  EXPECT_EQ(ids("\xff\xfe"), (Ids{187, 186}));
  EXPECT_EQ(ids("<|endoftext|>"), (Ids{27, 91, 437, 1659, 5239, 91, 29}));
  EXPECT_EQ(ids("<|endoftext|>", true), (Ids{50256}));
  EXPECT_EQ(ids(""), (Ids{}));
  for (std::string_view text :
       {std::string_view("a   b"), std::string_view("\t\t\ta"),
        std::string_view("a\xc2\xa0z"), std::string_view("a\xe2\x80\xa9z"),
        std::string_view("\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9"),
        std::string_view("\xe6\xad"), std::string_view("a\0b", 3)})
    EXPECT_FALSE(ids(text).empty());
}

TEST(Golden, SmolLM2) {
  auto tokenizer = smollm2Tokenizer();
  if (!tokenizer)
    GTEST_SKIP() << "GPTC_SMOLLM2_GGUF is not set";
  EXPECT_EQ(tokenizer->vocabularySize(), 49152);
  EXPECT_TRUE(tokenizer->isEndOfGeneration(0));
  EXPECT_FALSE(tokenizer->isEndOfGeneration(1));
  EXPECT_TRUE(tokenizer->isEndOfGeneration(2));
  expectAll(*tokenizer, "tokenizer/smollm2.json");

  // The vocabulary has no token for this byte.
  std::string error;
  EXPECT_FALSE(tokenizer->encode("ab\xffz", false, error));
  EXPECT_EQ(error, "text at byte 2: the vocabulary has no token for the byte "
                   "0xff; remove it from the text");
}

TEST(Golden, SmolLM2Prompts) {
  auto tokenizer = smollm2Tokenizer();
  if (!tokenizer)
    GTEST_SKIP() << "GPTC_SMOLLM2_GGUF is not set";
  auto cases = golden("smollm2/case.json");
  ASSERT_TRUE(cases.is_object());
  for (const auto &prompt : cases["prompts"]) {
    expectEntry(*tokenizer, prompt, true);
    StreamDecoder stream(*tokenizer);
    std::string text;
    for (int32_t id : prompt["greedy"]["tokens"])
      text += stream.push(id);
    text += stream.finish();
    EXPECT_EQ(text, prompt["greedy"]["text"].get<std::string>());
  }
}

TEST(Golden, SmolLM2Chat) {
  auto tokenizer = smollm2Tokenizer();
  if (!tokenizer)
    GTEST_SKIP() << "GPTC_SMOLLM2_GGUF is not set";
  std::string error;
  auto chat = golden("smollm2/case.json")["chat"];
  auto known = ChatTemplate::create(tokenizer->data(), error);
  ASSERT_TRUE(known) << error;
  std::vector<ChatMessage> messages;
  for (const auto &message : chat["messages"])
    messages.push_back({message["role"], message["content"]});
  bool prompt = chat["add_generation_prompt"];
  auto text = known->render(messages, prompt, error);
  ASSERT_TRUE(text) << error;
  EXPECT_EQ(*text, chat["rendered"].get<std::string>());
  auto ids = known->encode(*tokenizer, messages, prompt, error);
  ASSERT_TRUE(ids) << error;
  EXPECT_EQ(*ids, chat["ids"].get<std::vector<int32_t>>());
  EXPECT_EQ(*ids, *tokenizer->encodePrompt(*text, error));
}

TEST(Golden, SmallGgufModels) {
  for (const char *name : {"f32", "f16", "bf16", "q4-0", "q4-1", "q8-0"}) {
    std::string folder = std::string("llama-gguf-") + name, error;
    SCOPED_TRACE(folder);
    auto cases = golden(folder + "/case.json");
    ASSERT_TRUE(cases.is_object());
    auto data = tokenizerDataFromGgufFile(
        std::string(GPTC_GOLDEN_DIR) + "/" + folder + "/model.gguf", error);
    ASSERT_TRUE(data) << error;
    auto tokenizer = Tokenizer::create(std::move(*data), error);
    ASSERT_TRUE(tokenizer) << error;
    ASSERT_FALSE(cases["tokenizer_examples"].empty());
    for (const auto &entry : cases["tokenizer_examples"])
      expectEntry(*tokenizer, entry, true);
  }
}
