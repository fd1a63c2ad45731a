//===- ImportGpt2.cpp - TokenizerData from GPT-2's two files --------------===//
//
// vocab.json (OpenAI: encoder.json) maps token text to id, merges.txt
// (vocab.bpe) has one merge a line after an optional "#version" line.
//
//===----------------------------------------------------------------------===//
#include "StrictJson.h"
#include "VocabularyBuilder.h"
#include "gptc/Runtime/Text/TokenizerImport.h"
#include <fmt/format.h>

namespace gptc::text {

std::optional<TokenizerData> tokenizerFromGpt2Files(std::string_view vocabJson,
                                                    std::string_view mergesText,
                                                    std::string &error) {
  auto vocab = parseStrictJson(vocabJson, "vocab.json", error);
  if (!vocab)
    return std::nullopt;
  auto refuse = [&](std::string message) {
    error = std::move(message);
    return std::nullopt;
  };
  if (!vocab->is_object())
    return refuse("vocab.json: expected an object of token texts and ids");
  VocabularyBuilder builder;
  builder.data.pre = "gpt2";
  std::vector<bool> seen(vocab->size());
  for (const auto &item : vocab->items()) {
    const auto &id = item.value();
    // n texts for n ids: each id must be below n and come once.
    if (!id.is_number_unsigned() || id.get<uint64_t>() >= seen.size() ||
        seen[id.get<uint64_t>()])
      return refuse(fmt::format("vocab.json: token '{}': expected an id of its "
                                "own below {}, got {}",
                                item.key(), seen.size(), id.dump()));
    auto value = id.get<uint64_t>();
    seen[value] = true;
    bool special = item.key() == "<|endoftext|>";
    if (special)
      builder.data.bos = builder.data.eos = int32_t(value);
    if (!builder.setToken(int64_t(value), item.key(),
                          special ? TokenKind::Control : TokenKind::Normal,
                          error))
      return refuse("vocab.json: " + error);
  }
  bool first = true;
  while (!mergesText.empty()) {
    size_t end = mergesText.find('\n');
    std::string_view line = mergesText.substr(0, end);
    mergesText.remove_prefix(end == std::string_view::npos ? mergesText.size()
                                                           : end + 1);
    if (line.ends_with('\r'))
      line.remove_suffix(1);
    bool header = first && line.starts_with("#version");
    first = false;
    if (!header && !line.empty() && !builder.addMerge(line, error))
      return refuse("merges.txt: " + error);
  }
  return builder.finish(error);
}

} // namespace gptc::text
