//===- Tokenizer.cpp - Text to token ids and back -------------------------===//
#include "gptc/Runtime/Text/Tokenizer.h"
#include "SectionEncoder.h"
#include "SpecialTokens.h"
#include "Unicode.h"
#include <algorithm>
#include <fmt/format.h>

namespace gptc::text {

/// Places in a text, which normal form C can make three times as long, have 32
/// bits.
static constexpr uint64_t largestText = uint64_t(1) << 29;

struct Tokenizer::Impl {
  TokenizerData data;
  SpecialTokens special;
  std::unique_ptr<SectionEncoder> sections;

  explicit Impl(TokenizerData given) : data(std::move(given)), special(data) {}

  bool encodeSection(std::string_view section, size_t offset,
                     std::vector<int32_t> &ids, std::string &error) const {
    if (section.empty())
      return true;
    if (data.nfc && !isCertainlyNfc(section))
      return sections->encode(toNfc(section), offset, ids, error);
    return sections->encode(section, offset, ids, error);
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
  auto impl = std::make_unique<Impl>(std::move(data));
  impl->sections = impl->data.model == "bpe"
                       ? makeByteLevelEncoder(impl->data, error)
                       : makeSentencePieceEncoder(impl->data);
  if (!impl->sections)
    return std::nullopt;
  return Tokenizer(std::move(impl));
}

std::optional<std::vector<int32_t>>
Tokenizer::encode(std::string_view bytes, bool parseSpecial,
                  std::string &error) const {
  TextPart part{bytes, parseSpecial};
  return encode(std::span(&part, 1), error);
}

std::optional<std::vector<int32_t>>
Tokenizer::encode(std::span<const TextPart> parts, std::string &error) const {
  std::string joined;
  std::vector<size_t> ends; // of the parts
  uint64_t total = 0;
  for (const TextPart &part : parts)
    total += part.bytes.size();
  if (total > largestText) {
    error = fmt::format("text: expected at most {} bytes, got {}", largestText,
                        total);
    return std::nullopt;
  }
  for (const TextPart &part : parts) {
    if (parts.size() > 1)
      joined += part.bytes;
    ends.push_back((ends.empty() ? 0 : ends.back()) + part.bytes.size());
  }
  std::string_view bytes = parts.size() == 1 ? parts[0].bytes : joined;
  // Asked for places in ascending order: up to where all parts are parsed.
  size_t at = 0, upTo = 0, part = 0;
  auto parsedUpTo = [&](size_t place) {
    while (upTo <= place) {
      while (ends[part] <= place)
        ++part;
      if (!parts[part].parseSpecial)
        return size_t(0);
      for (size_t last = part; last < parts.size() && parts[last].parseSpecial;
           ++last)
        upTo = ends[last];
    }
    return upTo;
  };
  std::vector<int32_t> ids;
  while (at < bytes.size()) {
    auto match = impl->special.find(bytes, at, parsedUpTo);
    if (!impl->encodeSection(bytes.substr(at, match.start - at), at, ids,
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
  if (ids && impl->data.addEos)
    ids->push_back(impl->data.eos);
  return ids;
}

std::string Tokenizer::decode(std::span<const int32_t> ids,
                              bool skipSpecial) const {
  std::string bytes;
  TokenJoiner joiner(*this, skipSpecial, /*fromStart=*/true);
  for (int32_t id : ids)
    bytes += joiner.next(id);
  return bytes;
}

bool Tokenizer::isLossless() const {
  const TokenizerData &data = impl->data;
  return !data.nfc && (data.model == "bpe" || data.byteFallback) &&
         (data.spacePrefix == SpacePrefix::None ||
          data.spacePrefix == SpacePrefix::EachSection) &&
         std::ranges::all_of(data.strips, [](uint8_t bits) { return !bits; });
}

std::string_view Tokenizer::tokenBytes(int32_t id) const {
  if (id < 0 || id >= vocabularySize())
    return {};
  return impl->data.tokens[id];
}

int32_t Tokenizer::specialId(std::string_view text) const {
  auto match = impl->special.find(text, 0, [&](size_t) { return text.size(); });
  return match.start == 0 && match.length == text.size() ? match.id : -1;
}

bool Tokenizer::isSpecial(int32_t id) const {
  return id >= 0 && id < vocabularySize() &&
         impl->data.kinds[id] == TokenKind::Control;
}

bool Tokenizer::isCutOut(int32_t id) const {
  return isSpecial(id) || (id >= 0 && id < vocabularySize() &&
                           impl->data.kinds[id] == TokenKind::UserDefined);
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
