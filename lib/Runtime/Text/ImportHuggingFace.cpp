//===- ImportHuggingFace.cpp - TokenizerData from tokenizer.json ----------===//
//
// Reads the file format of Hugging Face's `tokenizers`: added_tokens,
// normalizer, pre_tokenizer, model, post_processor. A part this library would
// not reproduce exactly is refused by name.
//
//===----------------------------------------------------------------------===//
#include "StrictJson.h"
#include "TextRulesJson.h"
#include "VocabularyBuilder.h"
#include "gptc/Runtime/Text/TokenizerImport.h"
#include <algorithm>
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
  bool readVocabulary(const json &vocab, size_t addedCount);
  bool readScores(const json &vocab);
  bool readUnknown(const json &model);
  bool readAddedTokens(const json &added);
  bool readAddedToken(const json &token);
  TokenKind kindOf(std::string_view written) const;
  bool readMerges(const json &merges);
  bool readPostProcessor(const json &processor);
  std::optional<bool> readTemplate(const json &parts);
  bool readConfig(const json &config);
  int32_t idOfSpecial(std::string_view text) const;
  int32_t makeSpecial(std::string_view text);

  std::string &error;
  TextRules rules;
  VocabularyBuilder builder;
};

} // namespace

bool Importer::checkModel(const json &model) {
  // Files of before 2020 leave the type out.
  const json &type = member(model, "type");
  bool byteLevel = !rules.pre.empty();
  bool unigram = type == "Unigram" && !byteLevel;
  if (!model.is_object() || (!type.is_null() && type != "BPE" && !unigram))
    return fail(fmt::format("model: type {} is not supported; expected BPE{}",
                            type.dump(), byteLevel ? "" : " or Unigram"));
  for (const char *key :
       {"dropout", "continuing_subword_prefix", "end_of_word_suffix"})
    if (const json &value = member(model, key); !value.is_null() && value != "")
      return fail(fmt::format("model: {} is not supported", key));
  TokenizerData &data = builder.data;
  data.ignoreMerges = boolMember(model, "ignore_merges", false);
  data.byteFallback = boolMember(model, "byte_fallback", false);
  if (byteLevel && data.byteFallback)
    return fail("model: byte_fallback is not supported beside ByteLevel");
  data.model = byteLevel ? "bpe" : unigram ? "unigram" : "sentencepiece-bpe";
  data.pre = rules.pre;
  data.nfc = rules.nfc;
  data.splitAtSpaces = rules.splitAtSpaces;
  data.spacePrefix = rules.spacePrefix;
  data.fuseUnk =
      !byteLevel && (unigram || boolMember(model, "fuse_unk", false));
  if (!byteLevel)
    builder.writing = VocabularyBuilder::Writing::SentencePiece;
  return true;
}

/// The kind of a token of the model that no entry of added_tokens changes.
TokenKind Importer::kindOf(std::string_view written) const {
  return builder.data.byteFallback && byteTokenValue(written)
             ? TokenKind::Byte
             : TokenKind::Normal;
}

/// A unigram vocabulary: pairs of text and score, in the order of their ids.
bool Importer::readScores(const json &vocab) {
  if (!vocab.is_array())
    return fail("model.vocab: expected an array of texts and scores");
  for (const json &item : vocab) {
    size_t id = builder.data.scores.size();
    if (!item.is_array() || item.size() != 2 || !item[0].is_string() ||
        !item[1].is_number())
      return fail(fmt::format("model.vocab: token {}: expected a text and a "
                              "score",
                              id));
    std::string_view written = item[0].get_ref<const std::string &>();
    if (!builder.setToken(int64_t(id), written, kindOf(written), error))
      return fail("model.vocab: " + error);
    builder.data.scores.push_back(item[1].get<float>());
  }
  return true;
}

bool Importer::readUnknown(const json &model) {
  TokenizerData &data = builder.data;
  if (data.model == "bpe")
    return true;
  if (const json &id = member(model, "unk_id"); id.is_number_unsigned()) {
    if (id.get<uint64_t>() >= data.tokens.size())
      return fail(fmt::format("model.unk_id: expected an id below {}, got {}",
                              data.tokens.size(), id.dump()));
    data.unk = int32_t(id.get<uint64_t>());
  }
  std::string_view text = stringMember(model, "unk_token");
  for (size_t id = 0; id < data.tokens.size() && !text.empty(); ++id)
    if (data.unk == -1 && data.tokens[id] == text)
      data.unk = int32_t(id);
  if (!text.empty() && data.unk == -1)
    return fail(
        fmt::format("model.unk_token: '{}' is not in the vocabulary", text));
  return true;
}

bool Importer::readVocabulary(const json &vocab, size_t addedCount) {
  if (!vocab.is_object())
    return fail("expected model.vocab to be an object");
  // Ids may have gaps, but not so many that a wild one costs memory.
  uint64_t limit = 2 * (vocab.size() + addedCount) + 1024;
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
    if (!builder.setToken(int64_t(value), item.key(), kindOf(item.key()),
                          error))
      return fail("model.vocab: " + error);
  }
  return true;
}

bool Importer::readAddedTokens(const json &added) {
  if (!added.is_null() && !added.is_array())
    return fail("expected added_tokens to be an array");
  uint64_t limit = 2 * (builder.data.tokens.size() + added.size()) + 1024;
  for (const json &token : added) {
    const json &id = member(token, "id");
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= limit)
      return fail(fmt::format("added_tokens: expected an id below {}, got {}",
                              limit, id.dump()));
  }
  return std::ranges::all_of(
      added, [&](const json &token) { return readAddedToken(token); });
}

bool Importer::readAddedToken(const json &token) {
  TokenizerData &data = builder.data;
  auto id = member(token, "id").get<int64_t>();
  std::string_view content = stringMember(token, "content");
  bool special = boolMember(token, "special", false);
  if (content.empty())
    return fail("added_tokens: expected content for every token");
  if (boolMember(token, "single_word", false))
    return fail(fmt::format("added_tokens: '{}': single_word is not supported",
                            content));
  if (boolMember(token, "normalized", !special) && rules.prefixIsNormalizer)
    return fail(fmt::format("added_tokens: '{}': normalized is not supported "
                            "beside a normalizer that puts a space in front",
                            content));
  // Text reaches tokens with U+2581 by their spaces.
  bool reached = size_t(id) < data.tokens.size() &&
                 data.kinds[id] == TokenKind::Normal &&
                 data.tokens[id] != content;
  if (!special && reached && data.model != "bpe")
    return true;
  if (!builder.setToken(id, content,
                        special ? TokenKind::Control : TokenKind::UserDefined,
                        error))
    return fail("added_tokens: " + error);
  uint8_t strip = boolMember(token, "lstrip", false) * stripLeft |
                  boolMember(token, "rstrip", false) * stripRight;
  if (strip)
    builder.setStrip(id, strip);
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

/// The same, for a token that the configuration names: that makes it special,
/// unless plain text is made of it.
int32_t Importer::makeSpecial(std::string_view text) {
  TokenizerData &data = builder.data;
  if (int32_t id = idOfSpecial(text); id != -1)
    return id;
  for (size_t id = 0; id < data.tokens.size(); ++id) {
    if (data.tokens[id] != text)
      continue;
    bool reached = data.kinds[id] != TokenKind::UserDefined &&
                   (data.kinds[id] != TokenKind::Normal || text.size() < 2 ||
                    data.model == "unigram" ||
                    std::ranges::find(data.merges, id, &Merge::merged) !=
                        data.merges.end());
    if (!reached) {
      data.kinds[id] = TokenKind::Control;
      return int32_t(id);
    }
  }
  return -1;
}

/// Accepts what leaves the ids alone (ByteLevel) or puts one token in front or
/// at the end.
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
  if (type == "TemplateProcessing")
    if (const json &single = member(processor, "single"); single.is_array())
      if (auto known = readTemplate(single))
        return *known;
  return fail(fmt::format("post_processor: this {} is not supported; expected "
                          "ByteLevel or a template that puts one token in "
                          "front or at the end",
                          type));
}

/// Empty if the template is of another form.
std::optional<bool> Importer::readTemplate(const json &parts) {
  size_t at = 0;
  auto special = [&](int32_t &id, bool &adds) {
    if (at == parts.size())
      return true;
    std::string_view text =
        stringMember(member(parts[at], "SpecialToken"), "id");
    if (text.empty())
      return true;
    ++at;
    id = idOfSpecial(text);
    adds = true;
    return id != -1 || fail(fmt::format("post_processor: '{}' is no special "
                                        "token",
                                        text));
  };
  TokenizerData &data = builder.data;
  if (!special(data.bos, data.addBos))
    return false;
  if (at == parts.size() || !member(parts[at++], "Sequence").is_object())
    return std::nullopt;
  if (!special(data.eos, data.addEos))
    return false;
  return at == parts.size() ? std::optional(true) : std::nullopt;
}

static std::string_view chatTemplateIn(const json &config) {
  const json &chat = member(config, "chat_template");
  std::string_view found = stringMember(config, "chat_template");
  if (chat.is_array())
    for (const json &named : chat)
      if (stringMember(named, "name") == "default")
        found = stringMember(named, "template");
  return found;
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
    int32_t found = text.empty() ? -1 : makeSpecial(text);
    if (!text.empty() && found == -1)
      return fail(fmt::format("{}: '{}' is no special token of tokenizer.json",
                              key, text));
    // What the post-processor puts in stays.
    bool set = (&id == &builder.data.bos && builder.data.addBos) ||
               (&id == &builder.data.eos && builder.data.addEos);
    if (found != -1 && !set)
      id = found;
  }
  builder.data.chatTemplate = chatTemplateIn(config);
  return true;
}

std::optional<TokenizerData> Importer::run(const json &file,
                                           const json &config) {
  auto recognized = recognizeTextRules(file, error);
  if (!recognized)
    return std::nullopt;
  rules = *recognized;
  const json &model = member(file, "model"), &vocab = member(model, "vocab");
  const json &added = member(file, "added_tokens");
  if (!checkModel(model))
    return std::nullopt;
  bool unigram = builder.data.model == "unigram";
  if (!(unigram ? readScores(vocab) : readVocabulary(vocab, added.size())) ||
      !readUnknown(model) || !readAddedTokens(added) ||
      (!unigram && !readMerges(member(model, "merges"))) ||
      !readPostProcessor(member(file, "post_processor")) || !readConfig(config))
    return std::nullopt;
  // Added tokens come after those of the model; text does not reach them.
  if (unigram)
    builder.data.scores.resize(builder.data.tokens.size());
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

std::optional<std::string> chatTemplateOf(std::string_view configJson,
                                          std::string &error) {
  auto config = parseStrictJson(configJson, "tokenizer_config.json", error);
  if (!config)
    return std::nullopt;
  return std::string(chatTemplateIn(*config));
}

} // namespace gptc::text
