//===- TextRulesJson.cpp - Recognising what is done to text by structure --===//
//
// Byte level: a normalizer of NFC or none, and as pre-tokenizer
//   gpt2     ByteLevel(use_regex)
//   smollm   Digits(individual_digits), ByteLevel(use_regex)
//   llama3   Split(Llama 3's pattern, Isolated), ByteLevel(no regex)
//   qwen2    Split(Qwen2's pattern, Isolated), ByteLevel(no regex)
// ByteLevel must not add a space in front of the text.
//
// SentencePiece's spaces (U+2581), written by
//   Replace(" ")                            no space in front (Gemma)
//   Prepend, Replace(" ")                   in front of every section (LLaMA)
//   Metaspace(always, first or never)       unless there is one, cut at spaces
// with a decoder of Replace, ByteFallback, Fuse, Strip and Metaspace steps that
// undoes it.
//
//===----------------------------------------------------------------------===//
#include "TextRulesJson.h"
#include "StrictJson.h"
#include <algorithm>
#include <fmt/format.h>
#include <vector>

namespace gptc::text {

using nlohmann::json;

static constexpr std::string_view mark = "\xe2\x96\x81"; // U+2581

/// As in Llama 3's tokenizer.json, and Qwen2's.
static constexpr std::string_view llama3Split =
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|)re"
    R"re( ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";

static constexpr std::string_view qwen2Split =
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|)re"
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

static bool isSplit(const json &step, std::string_view pattern) {
  return stringMember(step, "type") == "Split" &&
         stringMember(step, "behavior") == "Isolated" &&
         !boolMember(step, "invert", false) &&
         stringMember(member(step, "pattern"), "Regex") == pattern;
}

/// Gemma's: the normalizer has left no space to split at.
static bool isSplitAtNothing(const json &step) {
  return stringMember(step, "type") == "Split" &&
         stringMember(step, "behavior") == "MergedWithPrevious" &&
         !boolMember(step, "invert", false) &&
         stringMember(member(step, "pattern"), "String") == " ";
}

static bool isReplace(const json &step, std::string_view from,
                      std::string_view to) {
  return stringMember(step, "type") == "Replace" &&
         stringMember(member(step, "pattern"), "String") == from &&
         stringMember(step, "content") == to;
}

/// The steps of a Sequence, or the one step, or none for null.
static std::vector<const json *> stepsOf(const json &tree, const char *key) {
  std::vector<const json *> steps;
  if (stringMember(tree, "type") == "Sequence") {
    for (const json &step : member(tree, key))
      steps.push_back(&step);
  } else if (!tree.is_null()) {
    steps.push_back(&tree);
  }
  return steps;
}

static bool refuse(std::string_view what,
                   const std::vector<const json *> &steps,
                   std::string_view expected, std::string &error) {
  std::string names;
  for (const json *step : steps) {
    std::string text =
        step->dump(-1, ' ', false, json::error_handler_t::replace);
    names += (names.empty() ? "" : ", ") + text.substr(0, 200);
    if (names.size() > 1000)
      break;
  }
  error = fmt::format("{}: [{}] is not supported; expected {}", what, names,
                      expected);
  return false;
}

static bool recognizeByteLevel(const std::vector<const json *> &normalizer,
                               const std::vector<const json *> &steps,
                               TextRules &rules, std::string &error) {
  if (steps.size() == 1 && isByteLevel(*steps[0], true))
    rules.pre = "gpt2";
  if (steps.size() == 2 && isDigits(*steps[0]) && isByteLevel(*steps[1], true))
    rules.pre = "smollm";
  if (steps.size() == 2 && isByteLevel(*steps[1], false))
    rules.pre = isSplit(*steps[0], llama3Split)  ? "llama3"
                : isSplit(*steps[0], qwen2Split) ? "qwen2"
                                                 : "";
  if (rules.pre.empty())
    return refuse("pre_tokenizer", steps,
                  "those of GPT-2, SmolLM, Llama 3 or Qwen2", error);
  rules.nfc =
      normalizer.size() == 1 && stringMember(*normalizer[0], "type") == "NFC";
  return rules.nfc || normalizer.empty() ||
         refuse("normalizer", normalizer, "none or NFC beside ByteLevel",
                error);
}

/// Metaspace as the only step of a pre-tokenizer.
static bool recognizeMetaspace(const json &step, TextRules &rules) {
  if (stringMember(step, "type") != "Metaspace" ||
      stringMember(step, "replacement") != mark)
    return false;
  std::string_view scheme = stringMember(step, "prepend_scheme");
  if (scheme.empty()) // in files of before 2024
    scheme = boolMember(step, "add_prefix_space", true) ? "always" : "never";
  if (scheme == "always")
    rules.spacePrefix = SpacePrefix::EachUnlessSpace;
  else if (scheme == "first")
    rules.spacePrefix = SpacePrefix::FirstUnlessSpace;
  else if (scheme != "never")
    return false;
  rules.splitAtSpaces = boolMember(step, "split", true);
  return true;
}

/// The decoder turns U+2581 into spaces and byte tokens into bytes; which one
/// of the spaces it leaves out follows from the encoder.
static bool isDecoderStep(const json &step) {
  std::string_view type = stringMember(step, "type");
  const json &stop = member(step, "stop");
  return type == "ByteFallback" || type == "Fuse" || type == "Metaspace" ||
         isReplace(step, mark, " ") ||
         (type == "Strip" && stringMember(step, "content") == " " && stop == 0);
}

static bool recognizeSentencePiece(const std::vector<const json *> &normalizer,
                                   const std::vector<const json *> &steps,
                                   const std::vector<const json *> &decoder,
                                   TextRules &rules, std::string &error) {
  bool prepends = !normalizer.empty() &&
                  stringMember(*normalizer[0], "type") == "Prepend" &&
                  stringMember(*normalizer[0], "prepend") == mark;
  size_t replaced = prepends ? 1 : 0;
  bool replaces = normalizer.size() == replaced + 1 &&
                  isReplace(*normalizer[replaced], " ", mark);
  if (!replaces && !normalizer.empty())
    return refuse("normalizer", normalizer,
                  "none, or Prepend and Replace of spaces by U+2581", error);
  if (prepends) {
    rules.spacePrefix = SpacePrefix::EachSection;
    rules.prefixIsNormalizer = true;
  }
  bool plain =
      steps.empty() || (steps.size() == 1 && isSplitAtNothing(*steps[0]));
  bool known = replaces
                   ? plain
                   : steps.size() == 1 && recognizeMetaspace(*steps[0], rules);
  if (!known)
    return refuse("pre_tokenizer", steps,
                  "those of GPT-2, SmolLM, Llama 3 or Qwen2, or spaces written "
                  "as U+2581 by the normalizer or Metaspace",
                  error);
  return std::ranges::all_of(decoder,
                             [](auto *s) { return isDecoderStep(*s); }) ||
         refuse("decoder", decoder,
                "Replace, ByteFallback, Fuse, Strip or Metaspace, for U+2581",
                error);
}

std::optional<TextRules> recognizeTextRules(const json &file,
                                            std::string &error) {
  TextRules rules;
  auto normalizer = stepsOf(member(file, "normalizer"), "normalizers");
  auto steps = stepsOf(member(file, "pre_tokenizer"), "pretokenizers");
  auto decoder = stepsOf(member(file, "decoder"), "decoders");
  bool byteLevel = std::ranges::any_of(steps, [](const json *step) {
    return stringMember(*step, "type") == "ByteLevel";
  });
  bool known = byteLevel ? recognizeByteLevel(normalizer, steps, rules, error)
                         : recognizeSentencePiece(normalizer, steps, decoder,
                                                  rules, error);
  return known ? std::optional(rules) : std::nullopt;
}

} // namespace gptc::text
