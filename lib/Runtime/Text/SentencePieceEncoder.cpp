//===- SentencePieceEncoder.cpp - BPE on characters and unigram models ----===//
//
// Text is cut in front of spaces where the vocabulary wants that, and each
// piece is merged from its characters (by merges, as Hugging Face's
// `tokenizers`, or by the scores of the tokens, as SentencePiece) or cut by the
// unigram model. What is left without a token becomes bytes or the unknown
// token.
//
//===----------------------------------------------------------------------===//
#include "BytePairMerger.h"
#include "PairMerging.h"
#include "SectionEncoder.h"
#include "UnigramModel.h"
#include "Utf8.h"
#include <array>
#include <bit>
#include <fmt/format.h>
#include <unordered_map>

namespace gptc::text {

/// A symbol of `mergePairs` that is no token.
static constexpr int32_t noToken = -2;

/// The order of merging: the higher the score the lower. Maps floats to
/// integers of the same order.
static uint32_t orderOfScore(float score) {
  uint32_t bits = std::bit_cast<uint32_t>(score + 0.0f); // -0 is 0
  uint32_t ascending = bits >> 31 ? ~bits : bits | 0x80000000;
  return ~ascending;
}

namespace {
class SentencePieceEncoder : public SectionEncoder {
public:
  explicit SentencePieceEncoder(const TokenizerData &data);
  bool encode(std::string_view section, size_t offset,
              std::vector<int32_t> &ids, std::string &error) const override;

private:
  /// Appends ids; what has no token goes to unknown().
  bool encodePiece(std::string_view piece, std::vector<int32_t> &ids,
                   std::string &error) const;
  void mergeByScore(std::vector<int32_t> &symbols, std::string_view piece,
                    const std::vector<uint32_t> &starts) const;
  bool unknown(std::string_view characters, std::vector<int32_t> &ids,
               std::string &error) const;

  const TokenizerData &data;
  BytePairMerger merger;
  std::optional<UnigramModel> unigram;
  std::array<int32_t, 256> idOfByte;
  /// Normal tokens by their bytes.
  std::unordered_map<std::string_view, int32_t> idOfText;
  size_t longest = 0; ///< of them, in bytes
};
} // namespace

SentencePieceEncoder::SentencePieceEncoder(const TokenizerData &data)
    : data(data), merger(data.merges) {
  idOfByte.fill(-1);
  for (size_t id = 0; id < data.tokens.size(); ++id) {
    if (data.kinds[id] == TokenKind::Byte)
      idOfByte[uint8_t(data.tokens[id][0])] = int32_t(id);
    if (data.kinds[id] == TokenKind::Normal) {
      idOfText.emplace(data.tokens[id], int32_t(id));
      longest = std::max(longest, data.tokens[id].size());
    }
  }
  if (data.model == "unigram")
    unigram.emplace(data);
}

bool SentencePieceEncoder::unknown(std::string_view characters,
                                   std::vector<int32_t> &ids,
                                   std::string &error) const {
  if (data.byteFallback) {
    for (char byte : characters)
      ids.push_back(idOfByte[uint8_t(byte)]);
    return true;
  }
  if (data.unk != -1) {
    ids.push_back(data.unk);
    return true;
  }
  Utf8Prefix prefix = utf8Prefix(characters);
  error = fmt::format(
      "text: the vocabulary has no token for {}, no byte tokens and no unknown "
      "token; remove it from the text",
      prefix.length
          ? fmt::format("U+{:04X}", prefix.codePoint)
          : fmt::format("the byte 0x{:02x}", unsigned(uint8_t(characters[0]))));
  return false;
}

void SentencePieceEncoder::mergeByScore(
    std::vector<int32_t> &symbols, std::string_view piece,
    const std::vector<uint32_t> &starts) const {
  mergePairs(symbols, [&](uint32_t at, uint32_t, uint32_t end) {
    size_t length = starts[end] - starts[at];
    if (length > longest)
      return Joined{};
    auto found = idOfText.find(piece.substr(starts[at], length));
    if (found == idOfText.end())
      return Joined{};
    return Joined{orderOfScore(data.scores[found->second]), found->second};
  });
}

bool SentencePieceEncoder::encodePiece(std::string_view piece,
                                       std::vector<int32_t> &ids,
                                       std::string &error) const {
  auto unsaid = [&](size_t from, size_t to) {
    return unknown(piece.substr(from, to - from), ids, error);
  };
  if (unigram)
    return unigram->cut(piece, [&](size_t from, size_t to, int32_t id) {
      if (id == -1)
        return unsaid(from, to);
      ids.push_back(id);
      return true;
    });
  if (data.ignoreMerges)
    if (auto whole = idOfText.find(piece); whole != idOfText.end()) {
      ids.push_back(whole->second);
      return true;
    }
  std::vector<int32_t> symbols;
  std::vector<uint32_t> starts; // of each symbol, then the end
  for (size_t at = 0; at < piece.size();) {
    size_t length = std::max<size_t>(utf8Prefix(piece.substr(at)).length, 1);
    auto found = idOfText.find(piece.substr(at, length));
    symbols.push_back(found == idOfText.end() ? noToken : found->second);
    starts.push_back(uint32_t(at));
    at += length;
  }
  starts.push_back(uint32_t(piece.size()));
  if (!data.scores.empty())
    mergeByScore(symbols, piece, starts);
  else
    merger.mergeInPlace(symbols);
  for (size_t i = 0; i < symbols.size(); ++i) {
    if (symbols[i] >= 0)
      ids.push_back(symbols[i]);
    if (symbols[i] != noToken)
      continue;
    size_t end = i + 1;
    while (data.fuseUnk && !data.byteFallback && end < symbols.size() &&
           symbols[end] == noToken)
      ++end;
    if (!unsaid(starts[i], starts[end]))
      return false;
    i = end - 1;
  }
  return true;
}

/// `section` as the tokens see it: U+2581 stands for a space, and one may be
/// put in front.
static std::string withSpaces(std::string_view section, SpacePrefix rule,
                              bool first) {
  static constexpr std::string_view mark = "\xe2\x96\x81";
  std::string text(" ");
  while (!section.empty()) {
    size_t at = section.find(mark);
    text += section.substr(0, at);
    if (at == std::string_view::npos)
      break;
    text += ' ';
    section.remove_prefix(at + mark.size());
  }
  bool wanted = rule == SpacePrefix::EachSection ||
                (rule != SpacePrefix::None && text[1] != ' ' &&
                 (first || rule == SpacePrefix::EachUnlessSpace));
  if (!wanted)
    text.erase(0, 1);
  return text;
}

bool SentencePieceEncoder::encode(std::string_view section, size_t offset,
                                  std::vector<int32_t> &ids,
                                  std::string &error) const {
  std::string text = withSpaces(section, data.spacePrefix, offset == 0);
  if (!data.splitAtSpaces)
    return encodePiece(text, ids, error);
  for (size_t at = 0; at < text.size();) {
    size_t end = std::min(text.find(' ', at + 1), text.size());
    if (!encodePiece(std::string_view(text).substr(at, end - at), ids, error))
      return false;
    at = end;
  }
  return true;
}

std::unique_ptr<SectionEncoder>
makeSentencePieceEncoder(const TokenizerData &data) {
  return std::make_unique<SentencePieceEncoder>(data);
}

} // namespace gptc::text
