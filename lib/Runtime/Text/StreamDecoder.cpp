//===- StreamDecoder.cpp - Text as its tokens arrive ----------------------===//
#include "Utf8.h"
#include "gptc/Runtime/Text/Tokenizer.h"

namespace gptc::text {

TokenJoiner::TokenJoiner(const Tokenizer &tokenizer, bool skipSpecial,
                         bool fromStart)
    : tokenizer(&tokenizer), skipSpecial(skipSpecial), first(fromStart),
      sectionStart(fromStart) {}

std::string_view TokenJoiner::next(int32_t id) {
  std::string_view bytes = tokenizer->tokenBytes(id);
  const TokenizerData &data = tokenizer->data();
  if (tokenizer->isCutOut(id)) {
    sectionStart = true;
    first &= data.addBos && id == data.bos;
    return skipSpecial && tokenizer->isSpecial(id) ? std::string_view() : bytes;
  }
  if (bytes.empty())
    return bytes;
  bool prefixed = data.spacePrefix == SpacePrefix::FirstUnlessSpace
                      ? first
                      : sectionStart && data.spacePrefix != SpacePrefix::None;
  if (prefixed && bytes[0] == ' ')
    bytes.remove_prefix(1);
  first = sectionStart = false;
  return bytes;
}

std::string StreamDecoder::push(int32_t id) {
  held += joiner.next(id);
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
