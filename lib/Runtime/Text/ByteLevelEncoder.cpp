//===- ByteLevelEncoder.cpp - Byte-level BPE ------------------------------===//
//
// Pieces of the pre-tokenizer, each merged from its bytes.
//
//===----------------------------------------------------------------------===//
#include "BytePairMerger.h"
#include "PreTokenizer.h"
#include "SectionEncoder.h"
#include <array>
#include <fmt/format.h>
#include <unordered_map>

namespace gptc::text {

namespace {
class ByteLevelEncoder : public SectionEncoder {
public:
  ByteLevelEncoder(const TokenizerData &data, PreTokenizer pre)
      : preTokenizer(std::move(pre)), merger(data.merges) {
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

  bool encode(std::string_view section, size_t offset,
              std::vector<int32_t> &ids, std::string &error) const override {
    std::vector<int32_t> symbols;
    auto encodePiece = [&](std::string_view piece) {
      size_t at = offset + size_t(piece.data() - section.data());
      return this->encodePiece(piece, at, symbols, ids, error);
    };
    return preTokenizer.cut(section, encodePiece, error);
  }

private:
  bool encodePiece(std::string_view piece, size_t offset,
                   std::vector<int32_t> &symbols, std::vector<int32_t> &ids,
                   std::string &error) const {
    if (auto whole = idOfPiece.find(piece); whole != idOfPiece.end()) {
      ids.push_back(whole->second);
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
    ids.insert(ids.end(), symbols.begin(), symbols.end());
    return true;
  }

  PreTokenizer preTokenizer;
  BytePairMerger merger;
  std::array<int32_t, 256> idOfByte; ///< -1: the vocabulary lacks it
  /// Normal tokens by their bytes; filled only for ignoreMerges.
  std::unordered_map<std::string_view, int32_t> idOfPiece;
};
} // namespace

std::unique_ptr<SectionEncoder> makeByteLevelEncoder(const TokenizerData &data,
                                                     std::string &error) {
  auto preTokenizer = PreTokenizer::create(data.pre, error);
  if (!preTokenizer)
    return nullptr;
  return std::make_unique<ByteLevelEncoder>(data, std::move(*preTokenizer));
}

} // namespace gptc::text
