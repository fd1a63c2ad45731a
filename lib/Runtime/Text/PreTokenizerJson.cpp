//===- PreTokenizerJson.cpp - Recognising pre-tokenizers by structure -----===//
//
//   gpt2     ByteLevel(use_regex)
//   smollm   Digits(individual_digits), ByteLevel(use_regex)
//   llama3   Split(Llama 3's pattern, Isolated), ByteLevel(no regex)
// ByteLevel must not add a space in front of the text.
//
//===----------------------------------------------------------------------===//
#include "PreTokenizerJson.h"
#include "StrictJson.h"
#include <fmt/format.h>
#include <vector>

namespace gptc::text {

using nlohmann::json;

/// As Llama 3's tokenizer.json has it.
static constexpr std::string_view llama3Split =
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)re"
    R"re( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";

static bool isByteLevel(const json &step, bool regex) {
  return stringMember(step, "type") == "ByteLevel" &&
         !boolMember(step, "add_prefix_space", true) &&
         boolMember(step, "use_regex", true) == regex;
}

static bool isDigits(const json &step) {
  return stringMember(step, "type") == "Digits" &&
         boolMember(step, "individual_digits", false);
}

static bool isLlama3Split(const json &step) {
  return stringMember(step, "type") == "Split" &&
         stringMember(step, "behavior") == "Isolated" &&
         !boolMember(step, "invert", false) &&
         stringMember(member(step, "pattern"), "Regex") == llama3Split;
}

std::optional<std::string> recognizePreTokenizer(const json &preTokenizer,
                                                 std::string &error) {
  std::vector<const json *> steps;
  if (stringMember(preTokenizer, "type") == "Sequence") {
    for (const json &step : member(preTokenizer, "pretokenizers"))
      steps.push_back(&step);
  } else if (!preTokenizer.is_null()) {
    steps.push_back(&preTokenizer);
  }
  if (steps.size() == 1 && isByteLevel(*steps[0], true))
    return "gpt2";
  if (steps.size() == 2 && isDigits(*steps[0]) && isByteLevel(*steps[1], true))
    return "smollm";
  if (steps.size() == 2 && isLlama3Split(*steps[0]) &&
      isByteLevel(*steps[1], false))
    return "llama3";

  std::string names;
  for (const json *step : steps) {
    std::string text =
        step->dump(-1, ' ', false, json::error_handler_t::replace);
    names += (names.empty() ? "" : ", ") + text.substr(0, 200);
  }
  error = fmt::format("pre_tokenizer: [{}] is not supported; expected those of "
                      "GPT-2, SmolLM or Llama 3",
                      names);
  return std::nullopt;
}

} // namespace gptc::text
