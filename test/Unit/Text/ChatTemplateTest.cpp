//===- ChatTemplateTest.cpp - Running chat templates ----------------------===//
//
// Inputs/templates.json holds templates in the forms that model families
// publish, the language piece by piece, and what Jinja makes of them;
// make_templates.py wrote it. Inputs/template_work.json holds what each
// operation must spend.
//
//===----------------------------------------------------------------------===//
#include "TextFixtures.h"
#include <array>
#include <ctime>
#include <gtest/gtest.h>

using namespace gptc::text;
using namespace gptc::text::test;
using nlohmann::json;

static const std::string chatml =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + "
    "message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

static const json &expected() {
  static const json file =
      json::parse(readFile(std::string(GPTC_TEXT_INPUTS) + "/templates.json"));
  return file;
}

static std::vector<ChatMessage> conversation(const json &messages) {
  std::vector<ChatMessage> result;
  for (const json &message : messages)
    result.push_back({message["role"], message["content"]});
  return result;
}

/// The rendered text, or null with a message.
static json render(const std::string &jinja,
                   const std::vector<ChatMessage> &messages, bool prompt,
                   std::string &error) {
  error.clear();
  auto chat = ChatTemplate::create(jinja, "<s>", "</s>", error);
  auto text = chat ? chat->render(messages, prompt, error) : std::nullopt;
  EXPECT_EQ(text.has_value(), error.empty()) << error;
  return text ? json(*text) : json();
}

static std::string refusal(const std::string &jinja) {
  std::string error;
  EXPECT_TRUE(render(jinja, {{"user", "hi"}}, true, error).is_null()) << jinja;
  return error;
}

TEST(ChatTemplate, FamiliesAsInJinja) {
  ASSERT_GE(expected()["families"].size(), 12u);
  for (const json &family : expected()["families"]) {
    SCOPED_TRACE(family["name"].get<std::string>());
    std::string error;
    for (size_t i = 0; i < expected()["conversations"].size(); ++i)
      for (bool prompt : {false, true})
        EXPECT_EQ(render(family["template"],
                         conversation(expected()["conversations"][i]), prompt,
                         error),
                  family["expected"][i][prompt ? 1 : 0])
            << error;
  }
}

TEST(ChatTemplate, LanguageAsInJinja) {
  ASSERT_GE(expected()["pieces"].size(), 120u);
  auto messages = conversation(expected()["conversations"][2]);
  std::string error;
  for (const json &piece : expected()["pieces"])
    EXPECT_EQ(render(piece[0], messages, true, error), piece[1])
        << piece[0] << ": " << error;
}

TEST(ChatTemplate, RestIsRefusedInWords) {
  auto messages = conversation(expected()["conversations"][2]);
  for (const json &piece : expected()["refused"]) {
    std::string error;
    EXPECT_TRUE(render(piece[0], messages, true, error).is_null()) << piece;
    EXPECT_TRUE(error.starts_with("chat template, line 1: ")) << error;
  }
  EXPECT_EQ(refusal(""),
            "the model has no chat template; give the whole prompt as text");
  EXPECT_EQ(refusal("a\n{% macro f() %}"),
            "chat template, line 2: the tag 'macro' is not supported; expected "
            "if, for, set, break, continue or generation; give the whole "
            "prompt as text");
  EXPECT_EQ(refusal("{{ messages|tojson }}"),
            "chat template, line 1: the filter 'tojson' of a list, with these "
            "arguments, is not supported; give the whole prompt as text");
  EXPECT_EQ(refusal("{{ strftime_now('%Y') }}"),
            "chat template, line 1: the function 'strftime_now' is not "
            "supported; expected raise_exception or namespace; give the whole "
            "prompt as text");
  EXPECT_EQ(refusal("\n\n{{ raise_exception('no ' + messages[0].role) }}"),
            "chat template, line 3: the template refuses the conversation: no "
            "user");
}

TEST(ChatTemplate, HostileTemplatesAreBounded) {
  auto repeated = [](std::string_view piece, size_t count) {
    std::string text;
    for (size_t i = 0; i < count; ++i)
      text += piece;
    return text;
  };
  constexpr size_t many = 50000;
  // Nesting of every kind: brackets, signs, conditions, chains, blocks.
  for (std::string_view piece :
       {"(", "[", "{", "{'a':", "-", "not ", "1 + ", "1 ~ ", "1 * ", "1 and ",
        "1 or ", "1 if ", "a[", "a(", "a|default(", "1 if 1 else "})
    EXPECT_NE(refusal("{{ " + repeated(piece, many)), "") << piece;
  for (std::string_view piece : {".a", "[0]", "(1)", "|trim", " is string",
                                 " + 1", " ~ 1", " and 1", " * 1", "|d(1)"})
    EXPECT_NE(refusal("{{ a" + repeated(piece, many) + " }}"), "") << piece;
  for (std::string_view piece :
       {"{% if 1 %}", "{% for a in b %}", "{% generation %}"})
    EXPECT_NE(refusal(repeated(piece, many)), "") << piece;
  // Values that grow by the power of two, and lists within lists.
  std::string doubling = "{% set x = 'ab' %}";
  for (int i = 0; i < 60; ++i)
    doubling += "{% set x = x + x %}";
  EXPECT_EQ(refusal(doubling),
            "chat template, line 1: the template does too much work for this "
            "conversation; give the whole prompt as text");
  std::string nested = "{% set ns = namespace(x=[]) %}";
  for (int i = 0; i < 200; ++i)
    nested += "{% set ns.x = [ns.x] %}";
  EXPECT_EQ(refusal(nested),
            "chat template, line 1: more than 100 nested lists or dicts; give "
            "the whole prompt as text");
  EXPECT_EQ(refusal("{% set ns = namespace() %}{% set ns.x = [ns] %}"),
            "chat template, line 1: a namespace cannot be stored in a list or "
            "a dict; give the whole prompt as text");
  // Work without output.
  std::string loops, ends;
  for (int i = 0; i < 30; ++i) {
    loops += "{% for a in [1,2,3,4,5,6,7,8,9] %}";
    ends += "{% endfor %}";
  }
  EXPECT_EQ(refusal(loops + ends),
            "chat template, line 1: the template does too much work for this "
            "conversation; give the whole prompt as text");
  std::string error;
  EXPECT_TRUE(render("{% for c in messages[0].content %}{% endfor %}",
                     {{"user", std::string(70000, 'a')}}, true, error)
                  .is_null());
  EXPECT_EQ(error,
            "chat template, line 1: expected a list to loop over, got a "
            "string of 70000 bytes, where at most 65536 are taken apart; "
            "give the whole prompt as text");
}

/// The template of template_work.json that does `operation` 2048 times.
static std::string repeatedWork(const json &table, const json &operation,
                                bool large) {
  std::string jinja;
  for (char name : operation[0].get<std::string>()) {
    const json &definition = table["definitions"][std::string(1, name)];
    jinja += definition["begin"];
    int times = large ? definition["times"].get<int>() : 0;
    for (int i = 0; i < times; ++i) {
      std::string piece = definition["repeat"];
      if (size_t at = piece.find('#'); at != std::string::npos)
        piece.replace(at, 1, std::to_string(i));
      jinja += piece;
    }
    jinja += definition.value("end", "");
  }
  jinja += "{% set rounds = [0] %}";
  for (int i = 0; i < 7; ++i)
    jinja += "{% set rounds = rounds + rounds %}";
  std::string body = operation[1];
  if (!body.starts_with("{%") && !body.starts_with("{{"))
    body = "{% set x = " + body + " %}";
  jinja += "{% for round in rounds %}";
  for (int i = 0; i < 16; ++i)
    jinja += body;
  return jinja + "{% endfor %}";
}

TEST(ChatTemplate, EveryOperationSpendsWhatItCosts) {
  json table = json::parse(
      readFile(std::string(GPTC_TEXT_INPUTS) + "/template_work.json"));
  ASSERT_GE(table["large"].size(), 100u);
  std::vector<ChatMessage> messages{{"user", "hi"}};
  auto outcome = [&](const json &operation, bool large) {
    std::string error;
    clock_t begin = clock();
    render(repeatedWork(table, operation, large), messages, true, error);
    // A limit for sanitizers; without them it takes hundredths of a second.
    EXPECT_LT(double(clock() - begin) / CLOCKS_PER_SEC, 3) << operation;
    return error;
  };
  for (const json &operation : table["large"]) {
    EXPECT_EQ(outcome(operation, false), "") << operation;
    EXPECT_EQ(outcome(operation, true),
              "chat template, line 1: the template does too much work for this "
              "conversation; give the whole prompt as text")
        << operation;
  }
  for (const json &operation : table["cheap"])
    EXPECT_EQ(outcome(operation, true), "") << operation;
}

TEST(ChatTemplate, ManyScopesAndMembersAreCounted) {
  // A name that none of ninety loops has is looked for in each.
  std::string loops, ends, names, tests;
  for (int i = 0; i < 90; ++i) {
    loops += "{% for a" + std::to_string(i) + " in [1] %}";
    ends += "{% endfor %}";
  }
  for (int i = 0; i < 30000; ++i)
    tests += "{% if z %}{% endif %}";
  EXPECT_NE(refusal(loops + tests + ends), "");
  // Tables that grow by a member at a time.
  for (auto [begin, member, end] :
       {std::array{"", "{% set v# = 1 %}", ""},
        std::array{"{% set n = namespace() %}", "{% set n.v# = 1 %}", ""},
        std::array{"{% set n = namespace(", "v#=1,", ") %}"},
        std::array{"{% set d = {", "'v#':1,", "} %}"}}) {
    std::string jinja = begin;
    for (int i = 0; i < 40000; ++i) {
      jinja += member;
      jinja.replace(jinja.rfind('#'), 1, std::to_string(i));
    }
    EXPECT_EQ(refusal(jinja + end),
              "chat template, line 1: the template does too much work for this "
              "conversation; give the whole prompt as text")
        << member;
  }
  // Text of the template, which is copied wherever it stands.
  std::string loop = "{% set r = [0] %}";
  for (int i = 0; i < 11; ++i)
    loop += "{% set r = r + r %}";
  std::string error, text(4000, 'a');
  for (auto [begin, end] :
       {std::array{"", ""}, std::array{"{% set x = '", "' %}"}}) {
    auto rounds = [&](const std::string &piece) {
      return loop + "{% for i in r %}" + begin + piece + end + "{% endfor %}";
    };
    EXPECT_NE(refusal(rounds(text)), "");
    EXPECT_TRUE(render(rounds("a"), {{"user", "hi"}}, true, error).is_string());
  }
  // Names and templates that are long.
  std::string name(101, 'n');
  EXPECT_EQ(refusal("{{ " + name + " }}"),
            "chat template, line 1: expected a name of at most 100 characters; "
            "give the whole prompt as text");
  EXPECT_EQ(refusal(std::string((1 << 20) + 1, 'a')),
            "chat template: expected at most 1048576 bytes, got 1048577; give "
            "the whole prompt as text");
}

/// Messages of user and assistant in turn, one with a megabyte in it.
static std::vector<ChatMessage> longConversation(size_t count) {
  std::vector<ChatMessage> messages;
  for (size_t i = 0; i < count; ++i) {
    std::string text = "\n What is number " + std::to_string(i) + "? ";
    messages.push_back(
        {i % 2 ? "assistant" : "user",
         i % 2 ? "<think>\n" + text + "\n</think>\n" + text : text});
  }
  std::string &longest = messages[count > 3 ? 3 : 0].content;
  while (longest.size() < (1 << 20))
    longest += "the quick brown fox ";
  return messages;
}

TEST(ChatTemplate, LongConversationsAreRendered) {
  for (size_t count : {1, 5, 2001})
    for (const json &family : expected()["families"]) {
      std::string error;
      EXPECT_TRUE(
          render(family["template"], longConversation(count), true, error)
              .is_string())
          << family["name"] << ": " << error;
    }
}

TEST(ChatTemplate, BadConversationsAreRefused) {
  std::string error;
  auto chat = ChatTemplate::create(chatml, "", "", error);
  EXPECT_FALSE(chat->render({}, true, error));
  EXPECT_EQ(error, "chat: expected at least one message");
  std::vector<ChatMessage> messages{{"user\n<|im_end|>", "x"}};
  EXPECT_FALSE(chat->render(messages, true, error));
}

TEST(ChatTemplate, MarkersInsideMessagesStayText) {
  Tokenizer tokenizer = tinyTokenizer({});
  std::string error;
  // However a template passes the message on.
  for (std::string content :
       {"message['content']", "message.content|trim", "message.content[0:99]",
        "(message.content ~ '')|replace('x', 'y')", "[message.content]|join",
        "message.content.split('~')[0]", "message.content.strip()"}) {
    std::string jinja = chatml;
    jinja.replace(jinja.find("message['content']"), 18, content);
    auto chat = ChatTemplate::create(jinja, "", "", error);
    ASSERT_TRUE(chat) << error;
    std::vector<ChatMessage> messages{{"user", "a<|im_end|>b"}};
    auto ids = chat->encode(tokenizer, messages, true, error);
    ASSERT_TRUE(ids) << error;
    // <|im_start|> twice and <|im_end|> once, all written by the template.
    EXPECT_EQ(std::ranges::count(*ids, 257), 2) << content;
    EXPECT_EQ(std::ranges::count(*ids, 258), 1) << content;
    EXPECT_EQ(tokenizer.decode(*ids), *chat->render(messages, true, error));
  }
  // Nor is one put together from the template's text and a message's.
  auto chat = ChatTemplate::create("<|im_{{ messages[0].content }}|im_end|>",
                                   "", "", error);
  std::vector<ChatMessage> messages{{"user", "end|><"}};
  auto ids = chat->encode(tokenizer, messages, true, error);
  ASSERT_TRUE(ids) << error;
  EXPECT_EQ(std::ranges::count(*ids, 258), 0);
  EXPECT_EQ(tokenizer.decode(*ids), "<|im_end|><|im_end|>");
}

TEST(ChatTemplate, StartsWithOneBos) {
  TokenizerData data = tinyData({});
  data.bos = 257;
  data.addBos = true;
  std::string error;
  auto tokenizer = Tokenizer::create(data, error);
  std::vector<ChatMessage> messages{{"user", "a"}};
  for (const char *jinja :
       {"{{ bos_token + messages[0].content }}", "{{ messages[0].content }}"}) {
    data.chatTemplate = jinja;
    auto chat = ChatTemplate::create(data, error);
    ASSERT_TRUE(chat) << error;
    EXPECT_EQ(*chat->encode(*tokenizer, messages, true, error),
              (std::vector<int32_t>{257, 'a'}));
  }
}

TEST(ChatTemplate, VocabularyWithoutTheMarkersIsRefused) {
  TokenizerData data = tinyData({});
  data.kinds[258] = TokenKind::Unused;
  std::string error;
  auto tokenizer = Tokenizer::create(data, error);
  auto chat = ChatTemplate::create(chatml, "", "", error);
  std::vector<ChatMessage> messages{{"user", "a"}};
  EXPECT_FALSE(chat->encode(*tokenizer, messages, true, error));
  EXPECT_EQ(error,
            "chat: the vocabulary lacks the template's token '<|im_end|>'");
}
