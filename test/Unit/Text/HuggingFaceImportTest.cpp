//===- HuggingFaceImportTest.cpp - Tokenizers from tokenizer.json ---------===//
#include "TextFixtures.h"
#include <gtest/gtest.h>

using namespace gptc::text;
using namespace gptc::text::test;
using nlohmann::json;

static json byteLevel() {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", false},
          {"trim_offsets", true},
          {"use_regex", true}};
}

static json hfExample() {
  return {{"version", "1.0"},
          {"added_tokens",
           {{{"id", 4}, {"content", "<s>"}, {"special", true}},
            {{"id", 5}, {"content", "  "}, {"special", false}}}},
          {"normalizer", nullptr},
          {"pre_tokenizer", byteLevel()},
          {"post_processor", nullptr},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"continuing_subword_prefix", ""},
            {"vocab", {{"a", 0}, {"\u0120", 1}, {"\u0120a", 2}, {"b", 3}}},
            {"merges", {"\u0120 a"}}}}};
}

static std::optional<TokenizerData> import(const json &file, std::string &error,
                                           const std::string &config = "") {
  return tokenizerFromHuggingFace(file.dump(), config, error);
}

static std::string hfError(const std::function<void(json &)> &change) {
  json file = hfExample();
  change(file);
  std::string error;
  EXPECT_FALSE(import(file, error));
  return error;
}

TEST(HuggingFaceImport, ReadsBpe) {
  std::string error;
  auto data = import(hfExample(), error);
  ASSERT_TRUE(data) << error;
  EXPECT_EQ(data->pre, "gpt2");
  EXPECT_EQ(data->tokens,
            (std::vector<std::string>{"a", " ", " a", "b", "<s>", "  "}));
  EXPECT_EQ(data->kinds[4], TokenKind::Control);
  EXPECT_EQ(data->kinds[5], TokenKind::UserDefined);
  EXPECT_EQ(data->merges, (std::vector<Merge>{{1, 0, 2}}));
  // Newer files write merges as pairs; older ones leave the type out.
  json newer = hfExample();
  newer["model"]["merges"] = json::array({json::array({"\u0120", "a"})});
  newer["model"].erase("type");
  EXPECT_TRUE(import(newer, error) == data) << error;
}

TEST(HuggingFaceImport, RecognisesPreTokenizers) {
  std::string error;
  json file = hfExample();
  file["pre_tokenizer"] = {
      {"type", "Sequence"},
      {"pretokenizers",
       {{{"type", "Digits"}, {"individual_digits", true}}, byteLevel()}}};
  EXPECT_EQ(import(file, error)->pre, "smollm");
  json noRegex = byteLevel();
  noRegex["use_regex"] = false;
  json split = {
      {"type", "Split"},
      {"pattern",
       {{"Regex",
         "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}"
         "{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|"
         "\\s+"}}},
      {"behavior", "Isolated"},
      {"invert", false}};
  file["pre_tokenizer"]["pretokenizers"] = {split, noRegex};
  file["model"]["ignore_merges"] = true;
  EXPECT_EQ(import(file, error)->pre, "llama3");
  EXPECT_TRUE(import(file, error)->ignoreMerges);
  split["pattern"]["Regex"] = "\\w+";
  file["pre_tokenizer"]["pretokenizers"] = {split, noRegex};
  EXPECT_FALSE(import(file, error));
  EXPECT_NE(error.find("pre_tokenizer: [{"), std::string::npos) << error;
  EXPECT_NE(error.find("\\\\w+"), std::string::npos) << error;
}

TEST(HuggingFaceImport, PostProcessorAndConfig) {
  std::string error;
  json file = hfExample();
  file["post_processor"] = {
      {"type", "Sequence"},
      {"processors",
       {{{"type", "ByteLevel"}},
        {{"type", "TemplateProcessing"},
         {"single",
          {{{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}},
           {{"Sequence", {{"id", "A"}, {"type_id", 0}}}}}}}}}};
  auto data = import(file, error,
                     R"({"eos_token": {"content": "<s>"}, "pad_token": null,
                         "chat_template": [{"name": "tools", "template": "x"},
                                           {"name": "default",
                                            "template": "y"}]})");
  ASSERT_TRUE(data) << error;
  EXPECT_TRUE(data->addBos);
  EXPECT_EQ(data->bos, 4);
  EXPECT_EQ(data->eos, 4);
  EXPECT_EQ(data->pad, -1);
  EXPECT_EQ(data->chatTemplate, "y");
  // A token that the configuration names is special; "b" is plain text.
  data = import(file, error, R"({"eos_token": "  "})");
  ASSERT_TRUE(data) << error;
  EXPECT_EQ(data->eos, 5);
  EXPECT_EQ(data->kinds[5], TokenKind::Control);
  file["model"]["vocab"]["<e>"] = 6;
  data = import(file, error, R"({"eos_token": "<e>"})");
  ASSERT_TRUE(data) << error;
  EXPECT_EQ(data->eos, 6);
  EXPECT_EQ(data->kinds[6], TokenKind::Control);
  EXPECT_FALSE(import(file, error, R"({"pad_token": "b"})"));
  EXPECT_FALSE(import(file, error, R"({"eos_token": "</s>"})"));
  EXPECT_EQ(error, "tokenizer.json: eos_token: '</s>' is no special token of "
                   "tokenizer.json");
}

TEST(HuggingFaceImport, RefusesByName) {
  EXPECT_EQ(hfError([](json &f) {
              f["normalizer"] = {{"type", "NFKC"}};
            }),
            "tokenizer.json: normalizer: [{\"type\":\"NFKC\"}] is not "
            "supported; expected none or NFC beside ByteLevel");
  EXPECT_EQ(hfError([](json &f) { f["model"]["type"] = "WordPiece"; }),
            "tokenizer.json: model: type \"WordPiece\" is not supported; "
            "expected BPE");
  EXPECT_EQ(hfError([](json &f) { f["model"]["byte_fallback"] = true; }),
            "tokenizer.json: model: byte_fallback is not supported beside "
            "ByteLevel");
  EXPECT_EQ(hfError([](json &f) { f["model"]["dropout"] = 0.1; }),
            "tokenizer.json: model: dropout is not supported");
  EXPECT_EQ(
      hfError([](json &f) { f["added_tokens"][0]["single_word"] = true; }),
      "tokenizer.json: added_tokens: '<s>': single_word is not "
      "supported");
  EXPECT_EQ(hfError([](json &f) { f["added_tokens"][0]["id"] = 1 << 30; }),
            "tokenizer.json: added_tokens: expected an id below 1036, got "
            "1073741824");
  EXPECT_EQ(hfError([](json &f) { f["model"]["vocab"]["b"] = 0; }),
            "tokenizer.json: model.vocab: token 'b': id 0 is taken");
  EXPECT_EQ(hfError([](json &f) { f["model"]["vocab"]["b"] = -1; }),
            "tokenizer.json: model.vocab: token 'b': expected an id below "
            "1036, got -1");
  EXPECT_EQ(hfError([](json &f) { f["model"]["merges"][0] = {"a"}; }),
            "tokenizer.json: model.merges: merge 0: expected \"left right\" or "
            "two strings");
  EXPECT_EQ(
      hfError([](json &f) {
        f["post_processor"] = {{"type", "Bert"}};
      }),
      "tokenizer.json: post_processor: this Bert is not supported; expected "
      "ByteLevel or a template that puts one token in front or at the end");
  json spaced = byteLevel();
  spaced["add_prefix_space"] = true;
  EXPECT_NE(hfError([&](json &f) {
              f["pre_tokenizer"] = spaced;
            }).find("is not supported; expected those of GPT-2"),
            std::string::npos);
  EXPECT_NE(hfError([](json &f) {
              f["pre_tokenizer"] = nullptr;
            }).find("pre_tokenizer: [] is not supported"),
            std::string::npos);
}

static json sentencePieceExample(bool unigram) {
  json mark = "\u2581";
  json file = {
      {"added_tokens",
       {{{"id", 0}, {"content", "<unk>"}, {"special", true}},
        {{"id", 5}, {"content", "<s>"}, {"special", true}, {"lstrip", true}},
        {{"id", 6}, {"content", "u"}, {"normalized", false}}}},
      {"normalizer",
       {{"type", "Sequence"},
        {"normalizers",
         {{{"type", "Prepend"}, {"prepend", mark}},
          {{"type", "Replace"},
           {"pattern", {{"String", " "}}},
           {"content", mark}}}}}},
      {"pre_tokenizer", nullptr},
      {"post_processor",
       {{"type", "TemplateProcessing"},
        {"single",
         {{{"SpecialToken", {{"id", "<s>"}}}},
          {{"Sequence", {{"id", "A"}}}},
          {{"SpecialToken", {{"id", "<s>"}}}}}}}},
      {"decoder",
       {{"type", "Sequence"},
        {"decoders",
         {{{"type", "Replace"},
           {"pattern", {{"String", mark}}},
           {"content", " "}},
          {{"type", "ByteFallback"}},
          {{"type", "Fuse"}},
          {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}}}}}},
      {"model",
       {{"type", "BPE"},
        {"unk_token", "<unk>"},
        {"vocab",
         {{"<unk>", 0}, {"\u2581", 1}, {"a", 2}, {"\u2581a", 3}, {" ", 4}}},
        {"merges", {"\u2581 a"}}}}};
  if (unigram) {
    file["normalizer"] = nullptr;
    file["pre_tokenizer"] = {{"type", "Metaspace"},
                             {"replacement", mark},
                             {"prepend_scheme", "first"},
                             {"split", false}};
    file["model"] = {
        {"type", "Unigram"}, {"unk_id", 0}, {"vocab", json::array()}};
    for (auto [text, score] :
         std::initializer_list<std::pair<const char *, double>>{{"<unk>", 0},
                                                                {"\u2581", -3},
                                                                {"a", -2},
                                                                {"\u2581a", -1},
                                                                {" ", -9}})
      file["model"]["vocab"].push_back(json::array({text, score}));
  }
  return file;
}

TEST(HuggingFaceImport, ReadsSentencePiece) {
  std::string error;
  auto bpe = import(sentencePieceExample(false), error);
  ASSERT_TRUE(bpe) << error;
  EXPECT_EQ(bpe->model, "sentencepiece-bpe");
  EXPECT_EQ(bpe->tokens, (std::vector<std::string>{"<unk>", " ", "a", " a", " ",
                                                   "<s>", "u"}));
  EXPECT_EQ(bpe->kinds[4], TokenKind::Unused); // no text is written so
  EXPECT_EQ(bpe->merges, (std::vector<Merge>{{1, 2, 3}}));
  EXPECT_EQ(bpe->strips, (std::vector<uint8_t>{0, 0, 0, 0, 0, stripLeft, 0}));
  EXPECT_EQ(bpe->spacePrefix, SpacePrefix::EachSection);
  EXPECT_TRUE(bpe->addBos && bpe->addEos);
  EXPECT_EQ(bpe->unk, 0);
  auto unigram = import(sentencePieceExample(true), error);
  ASSERT_TRUE(unigram) << error;
  EXPECT_EQ(unigram->model, "unigram");
  EXPECT_EQ(unigram->scores, (std::vector<float>{0, -3, -2, -1, -9, 0, 0}));
  EXPECT_EQ(unigram->spacePrefix, SpacePrefix::FirstUnlessSpace);
  EXPECT_FALSE(unigram->splitAtSpaces);
  auto refused = [&](bool unigram, auto change) {
    json file = sentencePieceExample(unigram);
    change(file);
    EXPECT_FALSE(import(file, error));
    return error;
  };
  EXPECT_EQ(refused(false,
                    [](json &f) { f["added_tokens"][2]["normalized"] = true; }),
            "tokenizer.json: added_tokens: 'u': normalized is not supported "
            "beside a normalizer that puts a space in front");
  EXPECT_EQ(refused(false,
                    [](json &f) {
                      f["decoder"] = {{"type", "CTC"}};
                    }),
            "tokenizer.json: decoder: [{\"type\":\"CTC\"}] is not supported; "
            "expected Replace, ByteFallback, Fuse, Strip or Metaspace, for "
            "U+2581");
  EXPECT_EQ(
      refused(true,
              [](json &f) {
                f["normalizer"] = {{"type", "Precompiled"}};
              }),
      "tokenizer.json: normalizer: [{\"type\":\"Precompiled\"}] is not "
      "supported; expected none, or Prepend and Replace of spaces by U+2581");
  EXPECT_EQ(refused(true, [](json &f) { f["model"]["vocab"][1] = "x"; }),
            "tokenizer.json: model.vocab: token 1: expected a text and a "
            "score");
  EXPECT_EQ(refused(true, [](json &f) { f["model"]["unk_id"] = 5; }),
            "tokenizer.json: model.unk_id: expected an id below 5, got 5");
  EXPECT_EQ(refused(false, [](json &f) { f["model"]["unk_token"] = "?"; }),
            "tokenizer.json: model.unk_token: '?' is not in the vocabulary");
  EXPECT_EQ(refused(false, [](json &f) { f["model"]["byte_fallback"] = true; }),
            "tokenizer.json: byte fallback: expected a token for each of the "
            "256 bytes, found none for 0x00");
}

TEST(HuggingFaceImport, SurvivesWrongTypesEverywhere) {
  // Each member in turn replaced by values of other types: a result or a
  // message, never an exception.
  for (const json &whole :
       {hfExample(), sentencePieceExample(false), sentencePieceExample(true)}) {
    const json others[] = {nullptr,
                           1,
                           "x",
                           json::array(),
                           json::object(),
                           true,
                           json::array({1, "x", nullptr})};
    json paths = whole.flatten();
    std::vector<json::json_pointer> places;
    for (const auto &item : paths.items())
      for (json::json_pointer at(item.key()); !at.empty(); at.pop_back())
        places.push_back(at);
    for (const auto &at : places)
      for (const json &other : others) {
        json file = whole;
        file[at] = other;
        std::string error;
        if (!import(file, error))
          EXPECT_FALSE(error.empty()) << file.dump();
      }
  }
}
