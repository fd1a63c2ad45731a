//===- Error.cpp - Errors as values ---------------------------------------===//

#include "gptc/Checkpoint/Error.h"
#include <fmt/format.h>

using namespace gptc::checkpoint;

/// Bytes of the UTF-8 sequence that `text` starts with; 0 if it starts with
/// none. Surrogates and overlong forms, which a terminal may refuse, are none.
static size_t utf8Length(std::string_view text) {
  auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char lead = at(0);
  size_t length = lead < 0x80   ? 1
                  : lead < 0xc2 ? 0
                  : lead < 0xe0 ? 2
                  : lead < 0xf0 ? 3
                  : lead < 0xf5 ? 4
                                : 0;
  if (length > text.size())
    return 0;
  for (size_t i = 1; i < length; ++i)
    if ((at(i) & 0xc0) != 0x80)
      return 0;
  if ((lead == 0xe0 && at(1) < 0xa0) || (lead == 0xed && at(1) > 0x9f) ||
      (lead == 0xf0 && at(1) < 0x90) || (lead == 0xf4 && at(1) > 0x8f))
    return 0;
  return length;
}

std::string gptc::checkpoint::quote(std::string_view text) {
  constexpr size_t limit = 80;
  std::string result = "'";
  std::string_view shown = text.substr(0, limit);
  while (!shown.empty()) {
    unsigned char byte = shown.front();
    size_t length = utf8Length(shown);
    if (byte < 0x20 || byte == 0x7f || length == 0) {
      result += fmt::format("\\x{:02x}", byte);
      length = 1;
    } else {
      result += shown.substr(0, length);
    }
    shown.remove_prefix(length);
  }
  if (text.size() > limit)
    result += fmt::format("...' ({} bytes)", text.size());
  else
    result += '\'';
  return result;
}

bool gptc::checkpoint::isUtf8(std::string_view text) {
  while (!text.empty()) {
    size_t length = utf8Length(text);
    if (length == 0)
      return false;
    text.remove_prefix(length);
  }
  return true;
}
