//===- ChatTemplate.cpp - Conversations as text ---------------------------===//
#include "gptc/Runtime/Text/ChatTemplate.h"
#include "TemplateEvaluator.h"
#include <algorithm>
#include <fmt/format.h>

namespace gptc::text {

/// Of a template: its tree takes some hundred bytes for each.
static constexpr size_t mostBytes = 1 << 20;

struct ChatTemplate::Program {
  chat::Body body;
  std::string bos, eos;

  bool run(std::span<const ChatMessage> messages, bool addGenerationPrompt,
           chat::Text &out, std::string &error) const;
};

std::optional<ChatTemplate> ChatTemplate::create(std::string_view jinja,
                                                 std::string_view bos,
                                                 std::string_view eos,
                                                 std::string &error) {
  if (jinja.empty()) {
    error = "the model has no chat template; give the whole prompt as text";
    return std::nullopt;
  }
  if (jinja.size() > mostBytes) {
    error = fmt::format("chat template: expected at most {} bytes, got {}; "
                        "give the whole prompt as text",
                        mostBytes, jinja.size());
    return std::nullopt;
  }
  std::string reason;
  auto body = chat::parseTemplate(jinja, reason);
  if (!body) {
    error =
        fmt::format("chat template, {}; give the whole prompt as text", reason);
    return std::nullopt;
  }
  ChatTemplate result;
  result.program = std::make_shared<Program>(std::move(*body), std::string(bos),
                                             std::string(eos));
  return result;
}

std::optional<ChatTemplate> ChatTemplate::create(const TokenizerData &data,
                                                 std::string &error) {
  auto written = [&](int32_t id) {
    return id < 0 || size_t(id) >= data.tokens.size()
               ? std::string_view()
               : std::string_view(data.tokens[id]);
  };
  return create(data.chatTemplate, written(data.bos), written(data.eos), error);
}

bool ChatTemplate::Program::run(std::span<const ChatMessage> messages,
                                bool addGenerationPrompt, chat::Text &out,
                                std::string &error) const {
  using chat::Dict, chat::Text, chat::Value;
  if (messages.empty()) {
    error = "chat: expected at least one message";
    return false;
  }
  uint64_t bytes = 0;
  for (const ChatMessage &message : messages) {
    if (message.role != "system" && message.role != "user" &&
        message.role != "assistant") {
      error = fmt::format("chat: expected the role system, user or assistant, "
                          "got '{}'",
                          message.role.substr(0, 100));
      return false;
    }
    bytes += message.content.size();
  }
  std::string reason;
  // The templates of the usual families take up to 6000 units for a message
  // and 20 for a byte of it.
  chat::Work work(2'000'000 + 20'000 * messages.size() + 128 * bytes, reason);
  chat::List list;
  for (const ChatMessage &message : messages) {
    Dict members;
    members.add(work, "role", Value(work, Text(work, message.role, false)));
    members.add(work, "content",
                Value(work, Text(work, message.content, false)));
    list.push(work, Value(work, std::move(members)));
  }
  Dict globals;
  globals.add(work, "messages", Value(work, std::move(list)));
  globals.add(work, "add_generation_prompt", Value(addGenerationPrompt));
  // What a caller of the template gives where there is nothing of the kind.
  globals.add(work, "tools", Value(nullptr));
  globals.add(work, "documents", Value(nullptr));
  if (!bos.empty())
    globals.add(work, "bos_token", Value(work, Text(work, bos, true)));
  if (!eos.empty())
    globals.add(work, "eos_token", Value(work, Text(work, eos, true)));
  if (chat::Evaluator(std::move(globals), work).run(body, out))
    return true;
  error = fmt::format("chat template, {}", reason);
  return false;
}

std::optional<std::string>
ChatTemplate::render(std::span<const ChatMessage> messages,
                     bool addGenerationPrompt, std::string &error) const {
  chat::Text text;
  if (!program->run(messages, addGenerationPrompt, text, error))
    return std::nullopt;
  return std::move(text).take();
}

/// The first "<|name|>" in the template's own text that is no control token:
/// the template belongs to another vocabulary.
static std::string_view strangeMarker(const Tokenizer &tokenizer,
                                      std::string_view text) {
  for (size_t at = 0; (at = text.find("<|", at)) != std::string_view::npos;
       at += 2) {
    size_t end = text.find_first_of("<|> \n", at + 2);
    if (end == std::string_view::npos || !text.substr(end).starts_with("|>"))
      continue;
    std::string_view marker = text.substr(at, end + 2 - at);
    if (tokenizer.specialId(marker) == -1)
      return marker;
  }
  return {};
}

std::optional<std::vector<int32_t>>
ChatTemplate::encode(const Tokenizer &tokenizer,
                     std::span<const ChatMessage> messages,
                     bool addGenerationPrompt, std::string &error) const {
  chat::Text text;
  if (!program->run(messages, addGenerationPrompt, text, error))
    return std::nullopt;
  std::vector<TextPart> parts;
  std::string_view bytes = text.bytes(), own = text.own();
  for (size_t at = 0; at < bytes.size();) {
    size_t end = std::min(own.find(char(!own[at]), at), bytes.size());
    parts.push_back({bytes.substr(at, end - at), own[at] != 0});
    at = end;
  }
  for (const TextPart &part : parts)
    if (auto marker = part.parseSpecial ? strangeMarker(tokenizer, part.bytes)
                                        : std::string_view();
        !marker.empty()) {
      error = fmt::format("chat: the vocabulary lacks the template's token "
                          "'{}'",
                          marker.substr(0, 100));
      return std::nullopt;
    }
  auto ids = tokenizer.encode(parts, error);
  const TokenizerData &data = tokenizer.data();
  if (ids && data.addBos && (ids->empty() || ids->front() != data.bos))
    ids->insert(ids->begin(), data.bos);
  return ids;
}

} // namespace gptc::text
