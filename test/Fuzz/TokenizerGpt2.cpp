//===- TokenizerGpt2.cpp - Fuzzes the import of GPT-2's two files ---------===//
//
// Input: vocab.json, a zero byte, merges.txt.
//
//===----------------------------------------------------------------------===//
#include "Tokenizers.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto [vocab, merges] = fuzz::twoTexts(data, size);
  std::string error;
  if (auto read = gptc::text::tokenizerFromGpt2Files(vocab, merges, error))
    fuzz::requireUsable(*read);
  else
    fuzz::requireMessage(error);
  return 0;
}
