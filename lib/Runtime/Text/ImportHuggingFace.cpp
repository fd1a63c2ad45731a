//===- ImportHuggingFace.cpp - TokenizerData from tokenizer.json ----------===//
//
// Reads the file format of Hugging Face's `tokenizers`: added_tokens,
// normalizer, pre_tokenizer, model, post_processor. A part this library would
// not reproduce exactly is refused by name.
//
//===----------------------------------------------------------------------===//
#include "PreTokenizerJson.h"
#include "StrictJson.h"
#include "VocabularyBuilder.h"
#include "gptc/Runtime/Text/TokenizerImport.h"
#include <fmt/format.h>

namespace gptc::text {

using nlohmann::json;

namespace {

class Importer {
public:
  explicit Importer(std::string &error) : error(error) {}
  std::optional<TokenizerData> run(const json &file, const json &config);

private:
  bool fail(std::string message) {
    error = std::move(message);
    return false;
  }
  bool checkModel(const json &model);
  bool readVocabulary(const json &vocab, const json &added);
  bool readAddedTokens(const json &added);
  bool readMerges(const json &merges);
  bool readPostProcessor(const json &processor);
  bool readConfig(const json &config);
  int32_t idOfSpecial(std::string_view text) const;

  std::string &error;
  VocabularyBuilder builder;
};

} // namespace

bool Importer::checkModel(const json &model) {
  // Files of before 2020 leave the type out.
  const json &type = member(model, "type");
  if (!model.is_object() || (!type.is_null() && type != "BPE"))
    return fail(fmt::format("model: type {} is not supported; expected BPE",
                            type.dump()));
  for (const char *key :
       {"dropout", "continuing_subword_prefix", "end_of_word_suffix"})
    if (const json &value = member(model, key); !value.is_null() && value != "")
      return fail(fmt::format("model: {} is not supported", key));
  if (boolMember(model, "byte_fallback", false))
    return fail("model: byte_fallback is not supported; expected byte-level "
                "BPE");
  builder.data.ignoreMerges = boolMember(model, "ignore_merges", false);
  return true;
}

bool Importer::readVocabulary(const json &vocab, const json &added) {
  if (!vocab.is_object() || (!added.is_null() && !added.is_array()))
    return fail("expected model.vocab to be an object and added_tokens an "
                "array");
  // Ids may have gaps, but not so many that a wild one costs memory.
  uint64_t limit = 2 * (vocab.size() + added.size()) + 1024;
  for (const auto &item : vocab.items()) {
    const json &id = item.value();
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= limit)
      return fail(fmt::format("model.vocab: token '{}': expected an id below "
                              "{}, got {}",
                              item.key(), limit, id.dump()));
    auto value = id.get<uint64_t>();
    if (value < builder.data.tokens.size() &&
        !builder.data.tokens[value].empty())
      return fail(fmt::format("model.vocab: token '{}': id {} is taken",
                              item.key(), value));
    if (!builder.setToken(int64_t(value), item.key(), TokenKind::Normal, error))
      return fail("model.vocab: " + error);
  }
  for (const json &token : added) {
    const json &id = member(token, "id");
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= limit)
      return fail(fmt::format("added_tokens: expected an id below {}, got {}",
                              limit, id.dump()));
  }
  return readAddedTokens(added);
}

bool Importer::readAddedTokens(const json &added) {
  for (const json &token : added) {
    std::string_view content = stringMember(token, "content");
    if (content.empty())
      return fail("added_tokens: expected content for every token");
    for (const char *key : {"lstrip", "rstrip", "single_word"})
      if (boolMember(token, key, false))
        return fail(fmt::format("added_tokens: '{}': {} is not supported",
                                content, key));
    if (!builder.setToken(member(token, "id").get<int64_t>(), content,
                          boolMember(token, "special", false)
                              ? TokenKind::Control
                              : TokenKind::UserDefined,
                          error))
      return fail("added_tokens: " + error);
  }
  return true;
}

bool Importer::readMerges(const json &merges) {
  if (!merges.is_array())
    return fail("model.merges: expected an array");
  for (const json &merge : merges) {
    bool added = false;
    if (merge.is_string())
      added = builder.addMerge(merge.get_ref<const std::string &>(), error);
    else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
             merge[1].is_string())
      added = builder.addMerge(merge[0].get_ref<const std::string &>(),
                               merge[1].get_ref<const std::string &>(), error);
    else
      error = fmt::format("merge {}: expected \"left right\" or two strings",
                          builder.data.merges.size());
    if (!added)
      return fail("model.merges: " + error);
  }
  return true;
}

int32_t Importer::idOfSpecial(std::string_view text) const {
  const TokenizerData &data = builder.data;
  for (size_t id = 0; id < data.tokens.size(); ++id)
    if (data.kinds[id] == TokenKind::Control && data.tokens[id] == text)
      return int32_t(id);
  return -1;
}

/// Accepts what leaves the ids alone (ByteLevel) or puts one token in front.
bool Importer::readPostProcessor(const json &processor) {
  if (processor.is_null())
    return true;
  std::string_view type = stringMember(processor, "type");
  if (type == "ByteLevel")
    return true;
  if (type == "Sequence") {
    // Sequences do not nest here: one level is all that files use.
    for (const json &step : member(processor, "processors"))
      if (stringMember(step, "type") == "Sequence" || !readPostProcessor(step))
        return error.empty() ? fail("post_processor: nested sequences are not "
                                    "supported")
                             : false;
    return true;
  }
  const json &single = member(processor, "single");
  if (type == "TemplateProcessing" && single.is_array()) {
    auto isText = [](const json &part) {
      return member(part, "Sequence").is_object();
    };
    if (single.size() == 1 && isText(single[0]))
      return true;
    std::string_view first =
        single.empty() ? std::string_view()
                       : stringMember(member(single[0], "SpecialToken"), "id");
    if (single.size() == 2 && !first.empty() && isText(single[1])) {
      builder.data.bos = idOfSpecial(first);
      builder.data.addBos = true;
      return builder.data.bos != -1 ||
             fail(fmt::format("post_processor: '{}' is no special token",
                              first));
    }
  }
  return fail(fmt::format("post_processor: this {} is not supported; expected "
                          "ByteLevel or a template that puts one token in "
                          "front",
                          type));
}

bool Importer::readConfig(const json &config) {
  struct Role {
    const char *key;
    int32_t &id;
  };
  for (auto [key, id] : {Role{"bos_token", builder.data.bos},
                         Role{"eos_token", builder.data.eos},
                         Role{"pad_token", builder.data.pad}}) {
    const json &value = member(config, key);
    std::string_view text = value.is_object() ? stringMember(value, "content")
                                              : stringMember(config, key);
    int32_t found = text.empty() ? -1 : idOfSpecial(text);
    if (!text.empty() && found == -1)
      return fail(fmt::format("{}: '{}' is no special token of tokenizer.json",
                              key, text));
    // A bos put in front by the post-processor stays.
    if (found != -1 &&
        !(key == std::string_view("bos_token") && builder.data.addBos))
      id = found;
  }
  const json &chat = member(config, "chat_template");
  builder.data.chatTemplate = stringMember(config, "chat_template");
  if (chat.is_array())
    for (const json &named : chat)
      if (stringMember(named, "name") == "default")
        builder.data.chatTemplate = stringMember(named, "template");
  return true;
}

std::optional<TokenizerData> Importer::run(const json &file,
                                           const json &config) {
  if (const json &normalizer = member(file, "normalizer");
      !normalizer.is_null()) {
    fail(fmt::format("normalizer: '{}' is not supported; expected none",
                     stringMember(normalizer, "type")));
    return std::nullopt;
  }
  auto pre = recognizePreTokenizer(member(file, "pre_tokenizer"), error);
  if (!pre)
    return std::nullopt;
  builder.data.pre = *pre;
  const json &model = member(file, "model");
  if (!checkModel(model) ||
      !readVocabulary(member(model, "vocab"), member(file, "added_tokens")) ||
      !readMerges(member(model, "merges")) ||
      !readPostProcessor(member(file, "post_processor")) || !readConfig(config))
    return std::nullopt;
  return builder.finish(error);
}

std::optional<TokenizerData>
tokenizerFromHuggingFace(std::string_view tokenizerJson,
                         std::string_view configJson, std::string &error) {
  auto file = parseStrictJson(tokenizerJson, "tokenizer.json", error);
  if (!file)
    return std::nullopt;
  json config;
  if (!configJson.empty()) {
    auto parsed = parseStrictJson(configJson, "tokenizer_config.json", error);
    if (!parsed)
      return std::nullopt;
    config = std::move(*parsed);
  }
  std::string reason;
  auto data = Importer(reason).run(*file, config);
  if (!data)
    error = "tokenizer.json: " + reason;
  return data;
}

} // namespace gptc::text
