//===- StreamDecoder.cpp - Text as its tokens arrive ----------------------===//
#include "Utf8.h"
#include "gptc/Runtime/Text/Tokenizer.h"

namespace gptc::text {

std::string StreamDecoder::push(int32_t id) {
  if (skipSpecial && tokenizer->isSpecial(id))
    return {};
  held += tokenizer->tokenBytes(id);
  // Everything is ready but a sequence cut off by the end.
  size_t ready = 0;
  while (ready < held.size()) {
    Utf8Prefix prefix = utf8Prefix(std::string_view(held).substr(ready));
    if (prefix.truncated)
      break;
    ready += prefix.length == 0 ? 1 : prefix.length;
  }
  std::string text = held.substr(0, ready);
  held.erase(0, ready);
  return text;
}

std::string StreamDecoder::finish() {
  std::string text = std::move(held);
  held.clear();
  return text;
}

} // namespace gptc::text
