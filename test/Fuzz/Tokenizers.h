//===- Tokenizers.h - What holds for every tokenizer ------------*- C++ -*-===//
#ifndef GPTC_TEST_FUZZ_TOKENIZERS_H
#define GPTC_TEST_FUZZ_TOKENIZERS_H

#include "Fuzz.h"
#include "gptc/Runtime/Text/Text.h"

namespace fuzz {

/// Encodes and decodes: the bytes come back, whole and as a stream, where the
/// tokenizer is lossless; or the message says what has no token.
inline void requireRoundTrip(const gptc::text::Tokenizer &tokenizer,
                             std::string_view bytes, bool parseSpecial) {
  std::string error;
  auto ids = tokenizer.encode(bytes, parseSpecial, error);
  if (!ids) {
    requireMessage(error);
    return;
  }
  std::string decoded = tokenizer.decode(*ids);
  bool marks = tokenizer.data().model != "bpe" &&
               bytes.find("\xe2\x96\x81") != std::string_view::npos;
  if (tokenizer.isLossless() && !marks)
    require(decoded == bytes, "decoding gives the bytes back");
  gptc::text::StreamDecoder stream(tokenizer, /*skipSpecial=*/false,
                                   /*fromStart=*/true);
  std::string streamed;
  for (int32_t id : *ids) {
    require(id >= 0 && id < tokenizer.vocabularySize(),
            "ids lie in the vocabulary");
    streamed += stream.push(id);
  }
  streamed += stream.finish();
  require(streamed == decoded, "a stream gives what decoding gives");
}

/// What an importer or a file gave: valid, the same after a trip through the
/// file form, and able to run.
inline void requireUsable(const gptc::text::TokenizerData &data) {
  using namespace gptc::text;
  std::string error;
  require(validate(data, error), "what was accepted is valid");
  auto again = parse(serialize(data), error);
  require(again && *again == data, "the file form keeps everything");
  auto tokenizer = Tokenizer::create(data, error);
  require(tokenizer.has_value(), "valid data makes a tokenizer");
  for (bool special : {false, true}) {
    requireRoundTrip(*tokenizer,
                     "The cat's 12345 \xe4\xbd\xa0\xf0\x9f\x98\x80\n \xff",
                     special);
    requireRoundTrip(*tokenizer, "<|endoftext|>ab  <|im_start|>", special);
    requireRoundTrip(*tokenizer, "e\xcc\x81 \xe2\x96\x81h  <s> he", special);
  }
  if (!ChatTemplate::create(data, error))
    requireMessage(error);
}

} // namespace fuzz

#endif // GPTC_TEST_FUZZ_TOKENIZERS_H
