//===- TokenizerData.cpp - Consistency of a vocabulary --------------------===//
//
// validate() is the gate between files and the code that runs: after it, ids
// may be used as indices and every merge joins what it says.
//
//===----------------------------------------------------------------------===//
#include "gptc/Runtime/Text/TokenizerData.h"
#include <array>
#include <fmt/format.h>

namespace gptc::text {

/// Names in checkpoints -> the rules of this library (PreTokenizer.cpp).
static constexpr std::array<std::pair<std::string_view, std::string_view>, 6>
    preTokenizerNames{{{"gpt2", "gpt2"},
                       {"gpt-2", "gpt2"},
                       {"smollm", "smollm"},
                       {"llama3", "llama3"},
                       {"llama-v3", "llama3"},
                       {"llama-bpe", "llama3"}}};

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

bool validate(const TokenizerData &data, std::string &error) {
  if (data.model != "bpe")
    return fail(error, fmt::format("tokenizer model '{}' is not supported; "
                                   "expected 'bpe'",
                                   data.model));
  if (canonicalPreTokenizer(data.pre) != data.pre)
    return fail(error, fmt::format("pre-tokenizer '{}' is not supported; "
                                   "expected 'gpt2', 'smollm' or 'llama3'",
                                   data.pre));
  size_t count = data.tokens.size();
  if (count == 0 || count > INT32_MAX)
    return fail(error, fmt::format("expected 1 to {} tokens, got {}", INT32_MAX,
                                   count));
  if (data.kinds.size() != count)
    return fail(error, fmt::format("expected one kind for each of {} tokens, "
                                   "got {}",
                                   count, data.kinds.size()));
  for (size_t id = 0; id < count; ++id) {
    if (data.kinds[id] > TokenKind::Byte)
      return fail(error, fmt::format("token {}: unknown kind {}", id,
                                     unsigned(data.kinds[id])));
    if (data.kinds[id] == TokenKind::Byte && data.tokens[id].size() != 1)
      return fail(error, fmt::format("token {}: expected one byte for a byte "
                                     "token, got {}",
                                     id, data.tokens[id].size()));
  }
  auto idInRange = [&](int64_t id, std::string_view what) {
    return (id >= 0 && uint64_t(id) < count) ||
           fail(error, fmt::format("{} id {} is outside the vocabulary of {} "
                                   "tokens",
                                   what, id, count));
  };
  if ((data.bos != -1 && !idInRange(data.bos, "bos")) ||
      (data.eos != -1 && !idInRange(data.eos, "eos")) ||
      (data.pad != -1 && !idInRange(data.pad, "pad")))
    return false;
  for (int32_t id : data.extraEnds)
    if (!idInRange(id, "end-of-generation"))
      return false;
  if (data.addBos && data.bos == -1)
    return fail(error, "the tokenizer adds bos to every prompt but names no "
                       "bos token");
  return validateMerges(data, error);
}

} // namespace gptc::text
