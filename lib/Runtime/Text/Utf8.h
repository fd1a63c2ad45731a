//===- Utf8.h - Length of a UTF-8 sequence --------------------------------===//
//
// The one decoder of this library. Refuses overlong forms, surrogates and
// values above U+10FFFF (Unicode 15, table 3-7).
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_LIB_RUNTIME_TEXT_UTF8_H
#define GPTC_LIB_RUNTIME_TEXT_UTF8_H

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace gptc::text {

/// What stands at the start of some bytes.
struct Utf8Prefix {
  size_t length = 0;      ///< of a valid sequence (1 to 4), 0 if there is none
  bool truncated = false; ///< no valid sequence, but more bytes could make one
  uint32_t codePoint = 0; ///< of a valid sequence
};

Utf8Prefix utf8Prefix(std::string_view bytes);

} // namespace gptc::text

#endif // GPTC_LIB_RUNTIME_TEXT_UTF8_H
