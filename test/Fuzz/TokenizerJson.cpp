//===- TokenizerJson.cpp - Fuzzes the import of tokenizer.json ------------===//
//
// Input: tokenizer.json, a zero byte, tokenizer_config.json.
//
//===----------------------------------------------------------------------===//
#include "Tokenizers.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto [tokenizer, config] = fuzz::twoTexts(data, size);
  std::string error;
  if (auto read =
          gptc::text::tokenizerFromHuggingFace(tokenizer, config, error))
    fuzz::requireUsable(*read);
  else
    fuzz::requireMessage(error);
  return 0;
}
