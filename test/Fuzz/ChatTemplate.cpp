//===- ChatTemplate.cpp - Fuzzes the template interpreter -----------------===//
//
// Input: a template, a zero byte, the content of the messages. A template may
// be refused; if it runs, it gives the same twice, and no message forges a
// control token.
//
//===----------------------------------------------------------------------===//
#include "Tokenizers.h"

using namespace gptc::text;

/// A control token of characters that no template has by chance.
static constexpr std::string_view marker = "\x01\x02";

static const Tokenizer &tokenizer() {
  static const Tokenizer made = [] {
    TokenizerData data;
    data.pre = "gpt2";
    for (unsigned byte = 0; byte < 256; ++byte)
      data.tokens.emplace_back(1, char(byte));
    data.kinds.assign(256, TokenKind::Normal);
    data.tokens.emplace_back(marker);
    data.kinds.push_back(TokenKind::Control);
    std::string error;
    auto created = Tokenizer::create(std::move(data), error);
    fuzz::require(created.has_value(), error.c_str());
    return std::move(*created);
  }();
  return made;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  auto [jinja, content] = fuzz::twoTexts(data, size);
  std::string error;
  auto chat = ChatTemplate::create(jinja, "<s>", "</s>", error);
  if (!chat) {
    fuzz::requireMessage(error);
    return 0;
  }
  std::string marked = std::string(content).append(marker);
  std::vector<ChatMessage> messages{{"system", marked},
                                    {"user", std::string(marker)},
                                    {"assistant", std::string(content)},
                                    {"user", marked + " "}};
  auto text = chat->render(messages, true, error);
  if (!text)
    fuzz::requireMessage(error);
  fuzz::require(chat->render(messages, true, error) == text,
                "a template gives the same twice");
  auto ids =
      text ? chat->encode(tokenizer(), messages, true, error) : std::nullopt;
  if (!ids)
    return 0;
  fuzz::require(tokenizer().decode(*ids) == *text, "ids say what is rendered");
  if (jinja.find('\x01') == std::string_view::npos)
    for (int32_t id : *ids)
      fuzz::require(id != 256, "a message does not forge a control token");
  return 0;
}
