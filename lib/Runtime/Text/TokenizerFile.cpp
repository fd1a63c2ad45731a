//===- TokenizerFile.cpp - The tokenizer's file in a package --------------===//
//
// Little-endian throughout. Header: "GPTCTOK2", u64 payload bytes, u64 FNV-1a
// (64 bits) of the payload. Payload, a string being u32 length and bytes:
//   string model, pre, chatTemplate
//   i32 bos, eos, pad, unk
//   u8 flags             bits 0 to 6: addBos, ignoreMerges, addEos, nfc,
//                        byteFallback, fuseUnk, splitAtSpaces
//   u8                   SpacePrefix
//   u32 n, i32[n]        extra end-of-generation ids
//   u32 n, u8[n]         token kinds
//   u32[n]               token lengths in bytes
//   u64 m, u8[m]         token bytes one after another, m = sum of the lengths
//   u32 n, f32[n]        scores: none or one for each token
//   u32 n, u8[n]         strip rules: none or one for each token
//   u32 k, (u32 left, u32 right, u32 merged)[k]
// Nothing may follow.
//
//===----------------------------------------------------------------------===//
#include "gptc/Runtime/Text/TokenizerData.h"
#include <array>
#include <bit>
#include <cstring>
#include <fmt/format.h>

namespace gptc::text {

static constexpr std::string_view magic = "GPTCTOK2";
static constexpr size_t headerBytes = 24;

static uint64_t fnv1a(std::span<const uint8_t> bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (uint8_t byte : bytes)
    hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

namespace {

class Writer {
public:
  std::vector<uint8_t> bytes;

  void integer(uint64_t value, unsigned width) {
    for (unsigned i = 0; i < width; ++i)
      bytes.push_back(uint8_t(value >> (8 * i)));
  }
  void raw(std::string_view text) {
    bytes.insert(bytes.end(), text.begin(), text.end());
  }
  void string(std::string_view text) {
    integer(text.size(), 4);
    raw(text);
  }
};

/// Reads with every size checked; after the first failure all reads give zero
/// and `failed` stays set.
class Reader {
public:
  explicit Reader(std::span<const uint8_t> bytes) : rest(bytes) {}
  std::span<const uint8_t> rest;
  bool failed = false;

  uint64_t integer(unsigned width) {
    if (!present(width, 1))
      return 0;
    uint64_t value = 0;
    for (unsigned i = 0; i < width; ++i)
      value |= uint64_t(rest[i]) << (8 * i);
    rest = rest.subspan(width);
    return value;
  }
  int32_t id() { return int32_t(uint32_t(integer(4))); }
  /// A count of items that each take `itemBytes`, all of them present.
  size_t count(unsigned width, size_t itemBytes) {
    uint64_t n = integer(width);
    return present(n, itemBytes) ? n : 0;
  }
  std::string_view raw(size_t n) {
    if (!present(n, 1))
      return {};
    std::string_view text(reinterpret_cast<const char *>(rest.data()), n);
    rest = rest.subspan(n);
    return text;
  }
  std::string_view string() { return raw(count(4, 1)); }

private:
  bool present(uint64_t n, size_t itemBytes) {
    if (!failed && n <= rest.size() / itemBytes)
      return true;
    failed = true;
    return false;
  }
};

} // namespace

/// The flags in the order of their bits.
template <typename Data> static auto flagsOf(Data &data) {
  return std::array{&data.addBos,       &data.ignoreMerges, &data.addEos,
                    &data.nfc,          &data.byteFallback, &data.fuseUnk,
                    &data.splitAtSpaces};
}

std::vector<uint8_t> serialize(const TokenizerData &data) {
  Writer out;
  for (const std::string *text : {&data.model, &data.pre, &data.chatTemplate})
    out.string(*text);
  for (int32_t id : {data.bos, data.eos, data.pad, data.unk})
    out.integer(uint32_t(id), 4);
  unsigned flags = 0, bit = 0;
  for (const bool *flag : flagsOf(data))
    flags |= unsigned(*flag) << bit++;
  out.integer(flags, 1);
  out.integer(uint8_t(data.spacePrefix), 1);
  out.integer(data.extraEnds.size(), 4);
  for (int32_t id : data.extraEnds)
    out.integer(uint32_t(id), 4);
  out.integer(data.tokens.size(), 4);
  for (TokenKind kind : data.kinds)
    out.integer(uint8_t(kind), 1);
  uint64_t total = 0;
  for (const std::string &token : data.tokens) {
    out.integer(token.size(), 4);
    total += token.size();
  }
  out.integer(total, 8);
  for (const std::string &token : data.tokens)
    out.raw(token);
  out.integer(data.scores.size(), 4);
  for (float score : data.scores)
    out.integer(std::bit_cast<uint32_t>(score), 4);
  out.integer(data.strips.size(), 4);
  for (uint8_t strip : data.strips)
    out.integer(strip, 1);
  out.integer(data.merges.size(), 4);
  for (const Merge &merge : data.merges)
    for (uint32_t id : {merge.left, merge.right, merge.merged})
      out.integer(id, 4);

  Writer file;
  file.bytes.reserve(headerBytes + out.bytes.size());
  file.raw(magic);
  file.integer(out.bytes.size(), 8);
  file.integer(fnv1a(out.bytes), 8);
  file.bytes.insert(file.bytes.end(), out.bytes.begin(), out.bytes.end());
  return std::move(file.bytes);
}

/// Fills kinds and tokens; false if the lengths do not add up.
static bool readTokens(Reader &in, TokenizerData &data) {
  size_t n = in.count(4, 1 + 4);
  std::string_view kinds = in.raw(n);
  data.kinds.resize(n);
  for (size_t i = 0; i < kinds.size(); ++i)
    data.kinds[i] = TokenKind(uint8_t(kinds[i]));
  Reader lengths(in.rest);
  in.raw(n * 4);
  std::string_view blob = in.raw(in.count(8, 1));
  if (in.failed)
    return false;
  data.tokens.reserve(n);
  for (size_t i = 0; i < n; ++i) {
    size_t length = lengths.integer(4);
    if (length > blob.size())
      return false;
    data.tokens.emplace_back(blob.substr(0, length));
    blob.remove_prefix(length);
  }
  return blob.empty();
}

std::optional<TokenizerData> parse(std::span<const uint8_t> bytes,
                                   std::string &error) {
  auto refuse = [&](std::string message) {
    error = "tokenizer file: " + message;
    return std::nullopt;
  };
  if (bytes.size() < headerBytes ||
      std::memcmp(bytes.data(), magic.data(), magic.size()) != 0)
    return refuse(fmt::format("expected a header starting with '{}'; the file "
                              "is damaged or of another version, compile the "
                              "package again",
                              magic));
  Reader header(bytes.subspan(magic.size()));
  uint64_t payloadBytes = header.integer(8), checksum = header.integer(8);
  if (payloadBytes != header.rest.size())
    return refuse(fmt::format("expected {} bytes after the header, got {}; "
                              "the file is truncated or extended",
                              payloadBytes, header.rest.size()));
  if (fnv1a(header.rest) != checksum)
    return refuse("the checksum does not match; the file is damaged");

  Reader in(header.rest);
  TokenizerData data;
  for (std::string *text : {&data.model, &data.pre, &data.chatTemplate})
    *text = in.string();
  for (int32_t *id : {&data.bos, &data.eos, &data.pad, &data.unk})
    *id = in.id();
  uint64_t flags = in.integer(1);
  for (bool *flag : flagsOf(data)) {
    *flag = flags & 1;
    flags >>= 1;
  }
  data.spacePrefix = SpacePrefix(in.integer(1));
  data.extraEnds.resize(in.count(4, 4));
  for (int32_t &id : data.extraEnds)
    id = in.id();
  bool tokensRead = readTokens(in, data);
  data.scores.resize(in.count(4, 4));
  for (float &score : data.scores)
    score = std::bit_cast<float>(uint32_t(in.integer(4)));
  std::string_view strips = in.raw(in.count(4, 1));
  data.strips.assign(strips.begin(), strips.end());
  data.merges.resize(in.count(4, 12));
  for (Merge &merge : data.merges)
    for (uint32_t *id : {&merge.left, &merge.right, &merge.merged})
      *id = uint32_t(in.integer(4));
  if (in.failed || !tokensRead || !in.rest.empty() || flags)
    return refuse("the sizes inside do not add up; the file is damaged");
  if (std::string reason; !validate(data, reason))
    return refuse(reason);
  return data;
}

} // namespace gptc::text
