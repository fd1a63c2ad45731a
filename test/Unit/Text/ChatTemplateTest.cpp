//===- ChatTemplateTest.cpp - Recognising and writing chat templates ------===//
#include "TextFixtures.h"
#include <gtest/gtest.h>

using namespace gptc::text;
using namespace gptc::text::test;

static const std::string loop =
    "{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + "
    "'<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\\n' }}{% endif %}";
static const std::string chatml = "{% for message in messages %}" + loop;
static const std::string withDefault =
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != "
    "'system' %}{{ '<|im_start|>system\nBe kind.<|im_end|>\n' }}{% endif %}" +
    loop;

static std::string render(const std::string &jinja,
                          std::vector<ChatMessage> messages, bool prompt) {
  std::string error;
  auto known = ChatTemplate::recognize(jinja, error);
  EXPECT_TRUE(known) << error;
  auto text = known ? known->render(messages, prompt, error) : std::nullopt;
  EXPECT_TRUE(text) << error;
  return text.value_or("");
}

TEST(ChatTemplate, ChatMl) {
  EXPECT_EQ(render(chatml, {{"user", "hi"}}, true),
            "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(render(chatml, {{"user", "a"}, {"assistant", "b"}}, false),
            "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb"
            "<|im_end|>\n");
}

TEST(ChatTemplate, DefaultSystemMessage) {
  EXPECT_EQ(render(withDefault, {{"user", "hi"}}, false),
            "<|im_start|>system\nBe kind.<|im_end|>\n"
            "<|im_start|>user\nhi<|im_end|>\n");
  EXPECT_EQ(render(withDefault, {{"system", "No."}, {"user", "hi"}}, false),
            "<|im_start|>system\nNo.<|im_end|>\n"
            "<|im_start|>user\nhi<|im_end|>\n");
}

TEST(ChatTemplate, WritingVariantsAreTheSame) {
  std::string spaced =
      "{%- for message in messages -%}\n  {{- \"<|im_start|>\" + "
      "message['role'] + \"\\n\" + message['content'] + \"<|im_end|>\\n\" }}\n"
      "{%- endfor %}\n{%- if add_generation_prompt %}\n"
      "{{- \"<|im_start|>assistant\\n\" }}\n{%- endif %}";
  EXPECT_EQ(render(spaced, {{"user", "hi"}}, true),
            render(chatml, {{"user", "hi"}}, true));
}

TEST(ChatTemplate, OthersAreRefused) {
  std::string error;
  EXPECT_FALSE(ChatTemplate::recognize("", error));
  EXPECT_EQ(error,
            "the model has no chat template; give the whole prompt as text");
  for (std::string jinja : {chatml + "x", "{% if tools %}{% endif %}" + chatml,
                            chatml.substr(0, chatml.size() - 1),
                            std::string("{{ messages }}"), std::string("'"),
                            std::string("{%for message in messages%}{%if "
                                        "loop.first and messages[0]['role'] != "
                                        "'system'%}{{'<|im_start|>system\n")})
    EXPECT_FALSE(ChatTemplate::recognize(jinja, error)) << jinja;
  EXPECT_FALSE(ChatTemplate::recognize("{{ messages }}", error));
  EXPECT_EQ(error, "the model's chat template is not one that is known (ChatML "
                   "as in SmolLM2); it starts with '{{ messages }}'; give the "
                   "whole prompt as text");
}

TEST(ChatTemplate, BadConversationsAreRefused) {
  std::string error;
  auto known = ChatTemplate::recognize(chatml, error);
  EXPECT_FALSE(known->render({}, true, error));
  EXPECT_EQ(error, "chat: expected at least one message");
  std::vector<ChatMessage> messages{{"user\n<|im_end|>", "x"}};
  EXPECT_FALSE(known->render(messages, true, error));
}

TEST(ChatTemplate, MarkersInsideMessagesStayText) {
  Tokenizer tokenizer = tinyTokenizer({});
  std::string error;
  auto known = ChatTemplate::recognize(chatml, error);
  std::vector<ChatMessage> messages{{"user", "a<|im_end|>b"}};
  auto ids = known->encode(tokenizer, messages, true, error);
  ASSERT_TRUE(ids) << error;
  // <|im_start|> twice and <|im_end|> once, all written by the template.
  EXPECT_EQ(std::ranges::count(*ids, 257), 2);
  EXPECT_EQ(std::ranges::count(*ids, 258), 1);
  EXPECT_EQ(tokenizer.decode(*ids), *known->render(messages, true, error));
}

TEST(ChatTemplate, VocabularyWithoutTheMarkersIsRefused) {
  TokenizerData data = tinyData({});
  data.kinds[258] = TokenKind::Unused;
  std::string error;
  auto tokenizer = Tokenizer::create(data, error);
  auto known = ChatTemplate::recognize(chatml, error);
  std::vector<ChatMessage> messages{{"user", "a"}};
  EXPECT_FALSE(known->encode(*tokenizer, messages, true, error));
  EXPECT_EQ(error,
            "chat: the vocabulary lacks the template's token '<|im_end|>'");
}
