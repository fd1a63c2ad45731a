//===- ChatTemplate.h - Conversations as text -----------------------------===//
//
// Chat templates are Jinja programs inside checkpoints. A subset of the
// language is interpreted, the one that the templates of the usual families are
// written in (docs/Text.md): output, if, for, set, whitespace control;
// strings, whole numbers, lists, dicts and namespaces; some filters, tests and
// methods. The rest is refused with its line: syntax when the template is
// read, filters and functions when they are reached.
//
// Templates may be hostile: they have at most 1 MiB, nesting is limited to 100
// levels, and work and memory to a few times what an honest template needs for
// the conversation at hand.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_RUNTIME_TEXT_CHATTEMPLATE_H
#define GPTC_RUNTIME_TEXT_CHATTEMPLATE_H

#include "gptc/Runtime/Text/Tokenizer.h"

namespace gptc::text {

struct ChatMessage {
  std::string role; ///< "system", "user" or "assistant"
  std::string content;
};

/// Immutable; may be used by several threads.
class ChatTemplate {
public:
  /// `jinja` is the checkpoint's chat template; `bos` and `eos` are what it
  /// knows as bos_token and eos_token (empty: undefined).
  static std::optional<ChatTemplate> create(std::string_view jinja,
                                            std::string_view bos,
                                            std::string_view eos,
                                            std::string &error);

  /// The template and the tokens of a tokenizer's data.
  static std::optional<ChatTemplate> create(const TokenizerData &data,
                                            std::string &error);

  /// The conversation as one string. `addGenerationPrompt` ends it with the
  /// opening of the assistant's answer. Refuses what the template refuses.
  std::optional<std::string> render(std::span<const ChatMessage> messages,
                                    bool addGenerationPrompt,
                                    std::string &error) const;

  /// The conversation as token ids. Only what the template itself writes
  /// becomes control tokens; the same characters inside a message stay plain
  /// text. Starts with bos where prompts do, if the template writes none.
  std::optional<std::vector<int32_t>>
  encode(const Tokenizer &tokenizer, std::span<const ChatMessage> messages,
         bool addGenerationPrompt, std::string &error) const;

private:
  struct Program;
  std::shared_ptr<const Program> program;
};

} // namespace gptc::text

#endif // GPTC_RUNTIME_TEXT_CHATTEMPLATE_H
