//===- VocabularyBuilder.cpp - Tokens and merges as files write them ------===//
#include "VocabularyBuilder.h"
#include "ByteAlphabet.h"
#include <algorithm>
#include <charconv>
#include <fmt/format.h>

namespace gptc::text {

/// Larger vocabularies do not exist; a limit keeps one wild id from allocating
/// memory for everything below it.
static constexpr int64_t maxTokens = 1 << 22;

/// Control tokens that end a turn or a text, whatever eos the file names.
static constexpr std::string_view endTokens[] = {
    "<|endoftext|>", "<|im_end|>", "<|end_of_text|>", "<|eot_id|>",
    "<|eom_id|>",    "<|end|>",    "<end_of_turn>"};

std::optional<uint8_t> byteTokenValue(std::string_view written) {
  uint8_t value = 0;
  if (written.size() != 6 || !written.starts_with("<0x") ||
      written.back() != '>')
    return std::nullopt;
  auto [end, code] = std::from_chars(&written[3], &written[5], value, 16);
  if (code != std::errc() || end != &written[5])
    return std::nullopt;
  return value;
}

std::string withMarksAsSpaces(std::string_view text) {
  static constexpr std::string_view mark = "\xe2\x96\x81";
  std::string out;
  for (size_t at; (at = text.find(mark)) != std::string_view::npos;
       text.remove_prefix(at + mark.size()))
    out.append(text.substr(0, at)) += ' ';
  return out.append(text);
}

/// The bytes of a normal token; empty if no text can reach it.
static std::string normalBytes(std::string_view written,
                               VocabularyBuilder::Writing writing) {
  if (writing == VocabularyBuilder::Writing::ByteAlphabet)
    return bytesFromAlphabet(written).value_or("");
  return written.find(' ') == std::string_view::npos
             ? withMarksAsSpaces(written)
             : std::string();
}

void VocabularyBuilder::setStrip(int64_t id, uint8_t bits) {
  data.strips.resize(data.tokens.size());
  data.strips[id] = bits;
}

bool VocabularyBuilder::setToken(int64_t id, std::string_view written,
                                 TokenKind kind, std::string &error) {
  if (id < 0 || id >= maxTokens) {
    error = fmt::format("token '{}': expected an id below {}, got {}", written,
                        maxTokens, id);
    return false;
  }
  if (size_t(id) >= data.tokens.size()) {
    data.tokens.resize(id + 1);
    data.kinds.resize(id + 1, TokenKind::Unused);
  }
  std::string bytes(written);
  if (kind == TokenKind::Normal) {
    if (std::string undone = normalBytes(written, writing); !undone.empty())
      bytes = std::move(undone);
    else
      kind = TokenKind::Unused;
  } else if (kind == TokenKind::Byte) {
    auto value = byteTokenValue(written);
    if (!value) {
      error = fmt::format("byte token {}: expected '<0xNN>', got '{}'", id,
                          written);
      return false;
    }
    bytes.assign(1, char(*value));
  }
  // Merges may name special tokens too; a normal one of that writing counts
  // more.
  auto [owner, isNew] = idOf.try_emplace(written, uint32_t(id));
  if (kind == TokenKind::Normal && !isNew) {
    if (data.kinds[owner->second] == TokenKind::Normal) {
      error = fmt::format("tokens {} and {} are both written '{}'",
                          owner->second, id, written);
      return false;
    }
    owner->second = uint32_t(id);
  }
  data.tokens[id] = std::move(bytes);
  data.kinds[id] = kind;
  return true;
}

bool VocabularyBuilder::addMerge(std::string_view left, std::string_view right,
                                 std::string &error) {
  auto leftId = idOf.find(left), rightId = idOf.find(right);
  std::string joined;
  joined.append(left).append(right);
  auto mergedId = idOf.find(joined);
  if (leftId == idOf.end() || rightId == idOf.end() || mergedId == idOf.end()) {
    error = fmt::format("merge {} ('{}' '{}'): '{}' is not in the vocabulary",
                        data.merges.size(), left, right,
                        leftId == idOf.end()    ? left
                        : rightId == idOf.end() ? right
                                                : std::string_view(joined));
    return false;
  }
  data.merges.push_back({leftId->second, rightId->second, mergedId->second});
  return true;
}

bool VocabularyBuilder::addMerge(std::string_view pair, std::string &error) {
  size_t space = pair.find(' ');
  if (space == std::string_view::npos ||
      pair.find(' ', space + 1) != std::string_view::npos) {
    error = fmt::format("merge {}: expected two tokens and one space between "
                        "them, got '{}'",
                        data.merges.size(), pair);
    return false;
  }
  return addMerge(pair.substr(0, space), pair.substr(space + 1), error);
}

std::optional<TokenizerData> VocabularyBuilder::finish(std::string &error) {
  for (size_t id = 0; id < data.tokens.size(); ++id)
    if (data.kinds[id] == TokenKind::Control && int32_t(id) != data.eos &&
        std::ranges::find(endTokens, data.tokens[id]) != std::end(endTokens))
      data.extraEnds.push_back(int32_t(id));
  if (!data.strips.empty())
    data.strips.resize(data.tokens.size());
  std::ranges::sort(data.extraEnds);
  auto repeated = std::ranges::unique(data.extraEnds);
  data.extraEnds.erase(repeated.begin(), repeated.end());
  if (!validate(data, error))
    return std::nullopt;
  return std::move(data);
}

} // namespace gptc::text
