//===- Error.cpp - Errors as values ---------------------------------------===//

#include "gptc/Checkpoint/Error.h"
#include <fmt/format.h>

using namespace gptc::checkpoint;

std::string gptc::checkpoint::quote(std::string_view text) {
  constexpr size_t limit = 80;
  std::string result = "'";
  for (unsigned char byte : text.substr(0, limit)) {
    if (byte < 0x20 || byte == 0x7f)
      result += fmt::format("\\x{:02x}", byte);
    else
      result += static_cast<char>(byte);
  }
  if (text.size() > limit)
    result += fmt::format("...' ({} bytes)", text.size());
  else
    result += '\'';
  return result;
}
