//===- ChatTemplate.cpp - Conversations as text ---------------------------===//
//
// Recognition compares the whole template after removing what does not change
// its meaning (white space between Jinja tokens, the kind of quotes, adjacent
// string literals), so a template that does anything more is not mistaken for
// plain ChatML.
//
//===----------------------------------------------------------------------===//
#include "gptc/Runtime/Text/ChatTemplate.h"
#include <fmt/format.h>

namespace gptc::text {

static constexpr std::string_view imStart = "<|im_start|>",
                                  imEnd = "<|im_end|>";

/// The template with single quotes, no white space outside string literals, no
/// trim marks, `\n` in literals as a line feed, and 'a'+'b' as 'ab'.
static std::string canonicalJinja(std::string_view jinja) {
  std::string out;
  char quote = 0; // of the literal we are in, else 0
  for (size_t i = 0; i < jinja.size(); ++i) {
    char c = jinja[i];
    bool more = i + 1 < jinja.size();
    if (quote && c == '\\' && more && jinja[i + 1] == 'n') {
      out += '\n';
      ++i;
    } else if (quote && c == quote) {
      out += '\'';
      quote = 0;
    } else if (quote) {
      out += c;
    } else if (c == '\'' || c == '"') {
      if (out.ends_with("'+"))
        out.resize(out.size() - 2);
      else
        out += '\'';
      quote = c;
    } else if (c == '-' &&
               (out.ends_with("{%") || out.ends_with("{{") ||
                (more && (jinja[i + 1] == '%' || jinja[i + 1] == '}')))) {
      continue;
    } else if (c != ' ' && c != '\t' && c != '\r' && c != '\n') {
      out += c;
    }
  }
  return out;
}

static bool consume(std::string_view &text, std::string_view prefix) {
  if (!text.starts_with(prefix))
    return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::optional<ChatTemplate> ChatTemplate::recognize(std::string_view jinja,
                                                    std::string &error) {
  if (jinja.empty()) {
    error = "the model has no chat template; give the whole prompt as text";
    return std::nullopt;
  }
  std::string canonical = canonicalJinja(jinja);
  std::string_view rest = canonical;
  ChatTemplate result;
  bool known = consume(rest, "{%formessageinmessages%}");
  if (consume(rest, "{%ifloop.firstandmessages[0]['role']!='system'%}"
                    "{{'<|im_start|>system\n")) {
    size_t end = rest.find("<|im_end|>\n'}}{%endif%}");
    known &= end != std::string_view::npos;
    result.defaultSystem = rest.substr(0, known ? end : 0);
    // A quote would end the literal: then it is more than one string.
    known &= result.defaultSystem.find('\'') == std::string::npos;
    rest.remove_prefix(result.defaultSystem.size());
    known &= consume(rest, "<|im_end|>\n'}}{%endif%}");
  }
  known &= consume(rest, "{{'<|im_start|>'+message['role']+'\n'+"
                         "message['content']+'<|im_end|>\n'}}{%endfor%}"
                         "{%ifadd_generation_prompt%}"
                         "{{'<|im_start|>assistant\n'}}{%endif%}");
  if (!known || !rest.empty()) {
    error = fmt::format("the model's chat template is not one that is known "
                        "(ChatML as in SmolLM2); it starts with '{}'; give the "
                        "whole prompt as text",
                        jinja.substr(0, 60));
    return std::nullopt;
  }
  return result;
}

std::optional<std::vector<ChatTemplate::Segment>>
ChatTemplate::segments(std::span<const ChatMessage> messages,
                       bool addGenerationPrompt, std::string &error) const {
  if (messages.empty()) {
    error = "chat: expected at least one message";
    return std::nullopt;
  }
  // Plain text between two markers is one segment: it is cut into pieces as a
  // whole, as in the rendered string.
  std::vector<Segment> out;
  auto add = [&](std::string_view text, bool marker) {
    if (!marker && !out.empty() && !out.back().marker)
      out.back().text += text;
    else
      out.push_back({std::string(text), marker});
  };
  auto addMessage = [&](std::string_view role, std::string_view content) {
    add(imStart, true);
    add(role, false);
    add("\n", false);
    add(content, false);
    add(imEnd, true);
    add("\n", false);
  };
  if (!defaultSystem.empty() && messages[0].role != "system")
    addMessage("system", defaultSystem);
  for (const ChatMessage &message : messages) {
    if (message.role != "system" && message.role != "user" &&
        message.role != "assistant") {
      error = fmt::format("chat: expected the role system, user or assistant, "
                          "got '{}'",
                          message.role);
      return std::nullopt;
    }
    addMessage(message.role, message.content);
  }
  if (addGenerationPrompt) {
    add(imStart, true);
    add("assistant\n", false);
  }
  return out;
}

std::optional<std::string>
ChatTemplate::render(std::span<const ChatMessage> messages,
                     bool addGenerationPrompt, std::string &error) const {
  auto parts = segments(messages, addGenerationPrompt, error);
  if (!parts)
    return std::nullopt;
  std::string text;
  for (const Segment &segment : *parts)
    text += segment.text;
  return text;
}

std::optional<std::vector<int32_t>>
ChatTemplate::encode(const Tokenizer &tokenizer,
                     std::span<const ChatMessage> messages,
                     bool addGenerationPrompt, std::string &error) const {
  auto parts = segments(messages, addGenerationPrompt, error);
  if (!parts)
    return std::nullopt;
  std::vector<int32_t> ids;
  if (tokenizer.data().addBos)
    ids.push_back(tokenizer.data().bos);
  for (const Segment &segment : *parts) {
    if (segment.marker) {
      int32_t id = tokenizer.specialId(segment.text);
      if (id == -1) {
        error = fmt::format("chat: the vocabulary lacks the template's token "
                            "'{}'",
                            segment.text);
        return std::nullopt;
      }
      ids.push_back(id);
      continue;
    }
    auto plain = tokenizer.encode(segment.text, /*parseSpecial=*/false, error);
    if (!plain)
      return std::nullopt;
    ids.insert(ids.end(), plain->begin(), plain->end());
  }
  return ids;
}

} // namespace gptc::text
