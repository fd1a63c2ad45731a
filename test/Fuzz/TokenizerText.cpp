//===- TokenizerText.cpp - Fuzzes encoding and decoding -------------------===//
//
// Input: a byte that picks the tokenizer and how specials are read, then the
// text. The vocabulary has every byte, some merges and three specials, so that
// every text can be encoded; a chat message of it is encoded too.
//
//===----------------------------------------------------------------------===//
#include "Tokenizers.h"
#include <array>

using namespace gptc::text;

/// The vocabulary of byte-level BPE.
static TokenizerData make(const char *pre, bool ignoreMerges) {
  TokenizerData data;
  data.pre = pre;
  data.ignoreMerges = ignoreMerges;
  data.nfc = data.pre == "qwen2";
  for (unsigned byte = 0; byte < 256; ++byte)
    data.tokens.emplace_back(1, char(byte));
  auto merge = [&](std::string left, std::string right) {
    auto find = [&](const std::string &token) {
      for (uint32_t i = 0; i < data.tokens.size(); ++i)
        if (data.tokens[i] == token)
          return i;
      data.tokens.push_back(token);
      return uint32_t(data.tokens.size() - 1);
    };
    uint32_t l = find(left), r = find(right), merged = find(left + right);
    data.merges.push_back({l, r, merged});
  };
  merge("e", "r"), merge(" ", "t"), merge("h", "e"), merge(" t", "he");
  merge("a", "a"), merge("aa", "aa"), merge("aaaa", "aaaa"), merge("a", "b");
  merge("\xc3", "\xa9"), merge("\xf0", "\x9f"), merge("\xf0\x9f", "\x98");
  merge(" ", " "), merge("  ", "  "), merge("'", "s"), merge("\n", "\n");
  merge("1", "2"), merge("12", "3"), merge("\xe4", "\xbd");
  data.kinds.assign(data.tokens.size(), TokenKind::Normal);
  for (const char *special : {"<|im_start|>", "<|im_end|>", "<|endoftext|>"}) {
    data.tokens.push_back(special);
    data.kinds.push_back(TokenKind::Control);
  }
  data.tokens.push_back("<user>");
  data.kinds.push_back(TokenKind::UserDefined);
  data.eos = int32_t(data.tokens.size() - 2);
  return data;
}

/// The same tokens for a SentencePiece model, with byte fallback.
static TokenizerData sentencePiece(const char *model, bool byScores,
                                   SpacePrefix prefix) {
  TokenizerData data = make("gpt2", false);
  data.model = model;
  data.pre = "";
  data.byteFallback = true;
  data.spacePrefix = prefix;
  data.splitAtSpaces = prefix == SpacePrefix::EachUnlessSpace;
  for (unsigned byte = 0; byte < 256; ++byte) {
    data.tokens.emplace_back(1, char(byte));
    data.kinds.push_back(TokenKind::Byte);
    if (byte >= 64 && byte < 96)
      data.kinds[byte] = TokenKind::Unused;
  }
  if (byScores) {
    data.merges.clear();
    for (const std::string &token : data.tokens)
      data.scores.push_back(-8.0f / float(token.size()));
  }
  return data;
}

static Tokenizer create(TokenizerData data) {
  std::string error;
  auto tokenizer = Tokenizer::create(std::move(data), error);
  fuzz::require(tokenizer.has_value(), error.c_str());
  return std::move(*tokenizer);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const std::array tokenizers{
      create(make("gpt2", false)),
      create(make("smollm", false)),
      create(make("llama3", true)),
      create(make("qwen2", false)),
      create(
          sentencePiece("sentencepiece-bpe", false, SpacePrefix::EachSection)),
      create(sentencePiece("sentencepiece-bpe", true,
                           SpacePrefix::EachUnlessSpace)),
      create(sentencePiece("unigram", true, SpacePrefix::None))};
  static const auto chat = [] {
    std::string error;
    return ChatTemplate::create(
        "{% for message in messages %}{{'<|im_start|>' + message['role'] + "
        "'\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if "
        "add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
        "", "", error);
  }();
  if (size == 0)
    return 0;
  const Tokenizer &tokenizer = tokenizers[data[0] % tokenizers.size()];
  std::string_view bytes = fuzz::text(data + 1, size - 1);
  bool special = data[0] > 125;
  std::string error;
  fuzz::require(tokenizer.encode(bytes, special, error).has_value(),
                "a vocabulary with every byte encodes every text");
  fuzz::requireRoundTrip(tokenizer, bytes, special);
  if (!chat)
    return 0;
  ChatMessage message{"user", std::string(bytes)};
  auto ids = chat->encode(tokenizer, {&message, 1}, true, error);
  if (!ids) {
    fuzz::requireMessage(error);
    return 0;
  }
  int starts = 0;
  for (int32_t id : *ids)
    starts += id == tokenizer.specialId("<|im_start|>");
  fuzz::require(starts == 2, "a message does not forge the template's markers");
  return 0;
}
