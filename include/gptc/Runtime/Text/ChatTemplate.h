//===- ChatTemplate.h - Conversations as text -----------------------------===//
//
// Chat templates are Jinja programs inside checkpoints. None is run here: the
// known ones are recognised by their text and written out by this library.
//   ChatML:   <|im_start|>ROLE\nCONTENT<|im_end|>\n ...
//   SmolLM2:  ChatML, with a default system message when the first message is
//             not a system message.
// Refuses every other template, in words.
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

class ChatTemplate {
public:
  /// `jinja` is the checkpoint's chat template.
  static std::optional<ChatTemplate> recognize(std::string_view jinja,
                                               std::string &error);

  /// The conversation as one string. `addGenerationPrompt` ends it with the
  /// opening of the assistant's answer.
  std::optional<std::string> render(std::span<const ChatMessage> messages,
                                    bool addGenerationPrompt,
                                    std::string &error) const;

  /// The conversation as token ids. Only the template's own markers become
  /// control tokens; the same characters inside a message stay plain text.
  std::optional<std::vector<int32_t>>
  encode(const Tokenizer &tokenizer, std::span<const ChatMessage> messages,
         bool addGenerationPrompt, std::string &error) const;

private:
  struct Segment {
    std::string text;
    bool marker;
  };
  std::optional<std::vector<Segment>>
  segments(std::span<const ChatMessage> messages, bool addGenerationPrompt,
           std::string &error) const;

  std::string defaultSystem; ///< empty: none
};

} // namespace gptc::text

#endif // GPTC_RUNTIME_TEXT_CHATTEMPLATE_H
