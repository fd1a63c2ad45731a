//===- Utf8.cpp - Length of a UTF-8 sequence ------------------------------===//
#include "Utf8.h"

namespace gptc::text {

Utf8Prefix utf8Prefix(std::string_view bytes) {
  if (bytes.empty())
    return {0, true, 0};
  uint8_t lead = bytes[0];
  if (lead < 0x80)
    return {1, false, lead};
  if (lead < 0xC2 || lead > 0xF4)
    return {};
  size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  uint32_t value = lead & (0x7F >> length);
  // The range of the second byte is narrower after these lead bytes: it is
  // what rules out overlong forms, surrogates and too large values.
  uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  for (size_t i = 1; i < length; ++i) {
    if (i == bytes.size())
      return {0, true, 0};
    uint8_t byte = bytes[i];
    if (byte < low || byte > high)
      return {};
    value = value << 6 | (byte & 0x3F);
    low = 0x80;
    high = 0xBF;
  }
  return {length, false, value};
}

} // namespace gptc::text
