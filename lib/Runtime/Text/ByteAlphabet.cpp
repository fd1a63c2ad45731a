//===- ByteAlphabet.cpp - GPT-2's byte-to-unicode table -------------------===//
#include "ByteAlphabet.h"
#include "Utf8.h"
#include <array>

namespace gptc::text {

static constexpr uint32_t firstShifted = 0x100, shiftedCount = 68;

static constexpr bool writesItself(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) ||
         (byte >= 0xAE && byte <= 0xFF);
}

/// Code point - 0x100 -> byte, for the bytes that do not write themselves.
static constexpr auto shiftedBytes = [] {
  std::array<uint8_t, shiftedCount> table{};
  size_t next = 0;
  for (uint32_t byte = 0; byte < 256; ++byte)
    if (!writesItself(byte))
      table[next++] = byte;
  return table;
}();

std::optional<std::string> bytesFromAlphabet(std::string_view written) {
  std::string bytes;
  bytes.reserve(written.size());
  while (!written.empty()) {
    Utf8Prefix prefix = utf8Prefix(written);
    if (prefix.length == 0)
      return std::nullopt;
    uint32_t code = prefix.codePoint;
    if (code < 0x100 && writesItself(code))
      bytes.push_back(char(code));
    else if (code >= firstShifted && code < firstShifted + shiftedCount)
      bytes.push_back(char(shiftedBytes[code - firstShifted]));
    else
      return std::nullopt;
    written.remove_prefix(prefix.length);
  }
  return bytes;
}

} // namespace gptc::text
