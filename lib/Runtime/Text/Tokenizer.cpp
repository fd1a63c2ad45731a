//===- Tokenizer.cpp - Byte-level BPE: text to token ids and back ---------===//
#include "gptc/Runtime/Text/Tokenizer.h"
#include "BytePairMerger.h"
#include "PreTokenizer.h"
#include "SpecialTokens.h"
#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <unordered_map>

namespace gptc::text {

struct Tokenizer::Impl {
  TokenizerData data;
  PreTokenizer preTokenizer;
  BytePairMerger merger;
  SpecialTokens special;
  std::array<int32_t, 256> idOfByte; ///< -1: the vocabulary lacks it
  /// Normal tokens by their bytes; filled only for ignoreMerges.
  std::unordered_map<std::string_view, int32_t> idOfPiece;

  Impl(TokenizerData given, PreTokenizer pre)
      : data(std::move(given)), preTokenizer(std::move(pre)),
        merger(data.merges), special(data) {
    idOfByte.fill(-1);
    // Normal tokens come before byte tokens for the same byte.
    for (TokenKind kind : {TokenKind::Normal, TokenKind::Byte})
      for (size_t id = 0; id < data.tokens.size(); ++id)
        if (data.kinds[id] == kind && data.tokens[id].size() == 1)
          if (int32_t &slot = idOfByte[uint8_t(data.tokens[id][0])]; slot == -1)
            slot = int32_t(id);
    if (data.ignoreMerges)
      for (size_t id = 0; id < data.tokens.size(); ++id)
        if (data.kinds[id] == TokenKind::Normal)
          idOfPiece.emplace(data.tokens[id], int32_t(id));
  }

  bool encodePiece(std::string_view piece, size_t offset,
                   std::vector<int32_t> &symbols, std::vector<int32_t> &out,
                   std::string &error) const {
    if (auto whole = idOfPiece.find(piece); whole != idOfPiece.end()) {
      out.push_back(whole->second);
      return true;
    }
    symbols.clear();
    for (size_t i = 0; i < piece.size(); ++i) {
      int32_t id = idOfByte[uint8_t(piece[i])];
      if (id == -1) {
        error = fmt::format("text at byte {}: the vocabulary has no token for "
                            "the byte 0x{:02x}; remove it from the text",
                            offset + i, unsigned(uint8_t(piece[i])));
        return false;
      }
      symbols.push_back(id);
    }
    merger.merge(symbols);
    out.insert(out.end(), symbols.begin(), symbols.end());
    return true;
  }
};

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
Tokenizer::Tokenizer(Tokenizer &&) noexcept = default;
Tokenizer &Tokenizer::operator=(Tokenizer &&) noexcept = default;
Tokenizer::~Tokenizer() = default;

std::optional<Tokenizer> Tokenizer::create(TokenizerData data,
                                           std::string &error) {
  if (!validate(data, error))
    return std::nullopt;
  auto preTokenizer = PreTokenizer::create(data.pre, error);
  if (!preTokenizer)
    return std::nullopt;
  return Tokenizer(
      std::make_unique<Impl>(std::move(data), std::move(*preTokenizer)));
}

std::optional<std::vector<int32_t>>
Tokenizer::encode(std::string_view bytes, bool parseSpecial,
                  std::string &error) const {
  if (bytes.size() > INT32_MAX) {
    error = fmt::format("text: expected at most {} bytes, got {}", INT32_MAX,
                        bytes.size());
    return std::nullopt;
  }
  std::vector<int32_t> ids, symbols;
  for (size_t at = 0; at < bytes.size();) {
    auto match = impl->special.find(bytes, at, parseSpecial);
    auto encodePiece = [&](std::string_view piece) {
      return impl->encodePiece(piece, size_t(piece.data() - bytes.data()),
                               symbols, ids, error);
    };
    if (!impl->preTokenizer.cut(bytes.substr(at, match.start - at), encodePiece,
                                error))
      return std::nullopt;
    if (match.id != -1)
      ids.push_back(match.id);
    at = match.start + match.length;
  }
  return ids;
}

std::optional<std::vector<int32_t>>
Tokenizer::encodePrompt(std::string_view bytes, std::string &error) const {
  auto ids = encode(bytes, /*parseSpecial=*/true, error);
  if (ids && impl->data.addBos)
    ids->insert(ids->begin(), impl->data.bos);
  return ids;
}

std::string Tokenizer::decode(std::span<const int32_t> ids,
                              bool skipSpecial) const {
  std::string bytes;
  for (int32_t id : ids)
    if (!skipSpecial || !isSpecial(id))
      bytes += tokenBytes(id);
  return bytes;
}

std::string_view Tokenizer::tokenBytes(int32_t id) const {
  if (id < 0 || id >= vocabularySize())
    return {};
  return impl->data.tokens[id];
}

int32_t Tokenizer::specialId(std::string_view text) const {
  auto match = impl->special.find(text, 0, /*control=*/true);
  return match.start == 0 && match.length == text.size() ? match.id : -1;
}

bool Tokenizer::isSpecial(int32_t id) const {
  return id >= 0 && id < vocabularySize() &&
         impl->data.kinds[id] == TokenKind::Control;
}

bool Tokenizer::isEndOfGeneration(int32_t id) const {
  return id >= 0 &&
         (id == impl->data.eos || std::ranges::find(impl->data.extraEnds, id) !=
                                      impl->data.extraEnds.end());
}

int32_t Tokenizer::vocabularySize() const {
  return int32_t(impl->data.tokens.size());
}

const TokenizerData &Tokenizer::data() const { return impl->data; }

} // namespace gptc::text
