//===- TokenizerData.cpp - Consistency of a vocabulary --------------------===//
//
// validate() is the gate between files and the code that runs: after it, ids
// may be used as indices and every merge joins what it says.
//
//===----------------------------------------------------------------------===//
#include "gptc/Runtime/Text/TokenizerData.h"
#include <array>
#include <cmath>
#include <fmt/format.h>

namespace gptc::text {

/// Names in checkpoints -> the rules of this library (PreTokenizer.cpp).
static constexpr std::pair<std::string_view, std::string_view>
    preTokenizerNames[] = {{"gpt2", "gpt2"},
                           {"gpt-2", "gpt2"},
                           {"phi-2", "gpt2"},
                           {"smollm", "smollm"},
                           {"llama3", "llama3"},
                           {"llama-v3", "llama3"},
                           {"llama-bpe", "llama3"},
                           {"qwen2", "qwen2"},
                           {"deepseek-r1-qwen", "qwen2"}};

std::optional<std::string> canonicalPreTokenizer(std::string_view name) {
  for (auto [known, canonical] : preTokenizerNames)
    if (name == known)
      return std::string(canonical);
  return std::nullopt;
}

static bool fail(std::string &error, std::string message) {
  error = std::move(message);
  return false;
}

static bool validateMerges(const TokenizerData &data, std::string &error) {
  size_t count = data.tokens.size();
  for (size_t rank = 0; rank < data.merges.size(); ++rank) {
    const Merge &merge = data.merges[rank];
    if (merge.left >= count || merge.right >= count || merge.merged >= count)
      return fail(error, fmt::format("merge {}: expected token ids below {}, "
                                     "got {} {} -> {}",
                                     rank, count, merge.left, merge.right,
                                     merge.merged));
    const std::string &left = data.tokens[merge.left];
    const std::string &right = data.tokens[merge.right];
    std::string_view merged = data.tokens[merge.merged];
    if (left.empty() || right.empty() ||
        merged.size() != left.size() + right.size() ||
        !merged.starts_with(left) || !merged.ends_with(right))
      return fail(error,
                  fmt::format("merge {}: token {} is not token {} "
                              "followed by token {}",
                              rank, merge.merged, merge.left, merge.right));
  }
  return true;
}

/// What a model needs and what it has no use for.
static bool validateModel(const TokenizerData &data, std::string &error) {
  size_t count = data.tokens.size();
  bool byteLevel = data.model == "bpe", unigram = data.model == "unigram";
  if (!byteLevel && !unigram && data.model != "sentencepiece-bpe")
    return fail(error, fmt::format("tokenizer model '{}' is not supported; "
                                   "expected 'bpe', 'sentencepiece-bpe' or "
                                   "'unigram'",
                                   data.model));
  if (byteLevel && canonicalPreTokenizer(data.pre) != data.pre)
    return fail(error, fmt::format("pre-tokenizer '{}' is not supported; "
                                   "expected 'gpt2', 'smollm', 'llama3' or "
                                   "'qwen2'",
                                   data.pre));
  if (!byteLevel && !data.pre.empty())
    return fail(error, fmt::format("expected no pre-tokenizer for the model "
                                   "'{}', got '{}'",
                                   data.model, data.pre));
  if (data.spacePrefix > SpacePrefix::FirstUnlessSpace)
    return fail(error, fmt::format("unknown rule {} for the space in front",
                                   unsigned(data.spacePrefix)));
  if (byteLevel && (data.byteFallback || data.fuseUnk || data.splitAtSpaces ||
                    data.spacePrefix != SpacePrefix::None || data.unk != -1))
    return fail(error, "byte-level BPE has neither unknown characters nor "
                       "rules for spaces");
  if (data.scores.size() != (unigram ? count : 0) &&
      (byteLevel || unigram || data.scores.size() != count))
    return fail(error, fmt::format("expected a score for each of {} tokens, "
                                   "got {}",
                                   byteLevel ? 0 : count, data.scores.size()));
  for (size_t id = 0; id < data.scores.size(); ++id)
    if (!std::isfinite(data.scores[id]))
      return fail(error, fmt::format("token {}: expected a finite score, got "
                                     "{}",
                                     id, data.scores[id]));
  if (!data.scores.empty() && !data.merges.empty())
    return fail(error, "expected merges or scores, got both");
  return true;
}

static bool validateTokens(const TokenizerData &data, std::string &error) {
  size_t count = data.tokens.size();
  std::array<bool, 256> haveByte{};
  for (size_t id = 0; id < count; ++id) {
    if (data.kinds[id] > TokenKind::Byte)
      return fail(error, fmt::format("token {}: unknown kind {}", id,
                                     unsigned(data.kinds[id])));
    if (data.kinds[id] != TokenKind::Byte)
      continue;
    if (data.tokens[id].size() != 1)
      return fail(error, fmt::format("token {}: expected one byte for a byte "
                                     "token, got {}",
                                     id, data.tokens[id].size()));
    haveByte[uint8_t(data.tokens[id][0])] = true;
  }
  for (size_t byte = 0; byte < 256 && data.byteFallback; ++byte)
    if (!haveByte[byte])
      return fail(error,
                  fmt::format("byte fallback: expected a token for each "
                              "of the 256 bytes, found none for 0x{:02x}",
                              byte));
  if (!data.strips.empty() && data.strips.size() != count)
    return fail(error, fmt::format("expected no strip rules or one for each of "
                                   "{} tokens, got {}",
                                   count, data.strips.size()));
  for (size_t id = 0; id < data.strips.size(); ++id)
    if (data.strips[id] > (stripLeft | stripRight) ||
        (data.strips[id] && data.kinds[id] != TokenKind::Control &&
         data.kinds[id] != TokenKind::UserDefined))
      return fail(error, fmt::format("token {}: unexpected strip rule {}", id,
                                     unsigned(data.strips[id])));
  return true;
}

static bool validateIds(const TokenizerData &data, std::string &error) {
  size_t count = data.tokens.size();
  auto idInRange = [&](int64_t id, std::string_view what) {
    return (id >= 0 && uint64_t(id) < count) ||
           fail(error, fmt::format("{} id {} is outside the vocabulary of {} "
                                   "tokens",
                                   what, id, count));
  };
  if ((data.bos != -1 && !idInRange(data.bos, "bos")) ||
      (data.eos != -1 && !idInRange(data.eos, "eos")) ||
      (data.pad != -1 && !idInRange(data.pad, "pad")) ||
      (data.unk != -1 && !idInRange(data.unk, "unknown-token")))
    return false;
  for (int32_t id : data.extraEnds)
    if (!idInRange(id, "end-of-generation"))
      return false;
  if (data.addBos && data.bos == -1)
    return fail(error, "the tokenizer adds bos to every prompt but names no "
                       "bos token");
  if (data.addEos && data.eos == -1)
    return fail(error, "the tokenizer adds eos to every prompt but names no "
                       "eos token");
  return true;
}

bool validate(const TokenizerData &data, std::string &error) {
  size_t count = data.tokens.size();
  if (count == 0 || count > INT32_MAX)
    return fail(error, fmt::format("expected 1 to {} tokens, got {}", INT32_MAX,
                                   count));
  if (data.kinds.size() != count)
    return fail(error, fmt::format("expected one kind for each of {} tokens, "
                                   "got {}",
                                   count, data.kinds.size()));
  return validateModel(data, error) && validateTokens(data, error) &&
         validateIds(data, error) && validateMerges(data, error);
}

} // namespace gptc::text
