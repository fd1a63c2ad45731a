//===- TokenizerGguf.cpp - Fuzzes the import of a GGUF's tokenizer --------===//
//
// Input: lines, each of a letter and what it gives. The first line of "t" or
// "m" may be repeated; the last of the others counts.
//   M model   P pre-tokenizer   C chat template   R architecture
//   a adds bos   A adds eos   n no space in front
//   t token, its kind being the digit before it   m merge   s score
//   B a token, with a score, for each of the 256 bytes
//   b e p u x: a number for bos, eos, pad, unknown, an extra end
//
//===----------------------------------------------------------------------===//
#include "Tokenizers.h"
#include <charconv>

static int64_t number(std::string_view text) {
  int64_t value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

static const std::vector<std::string> &byteTokens() {
  static const auto tokens = [] {
    std::vector<std::string> made;
    for (unsigned byte = 0; byte < 256; ++byte) {
      char text[8];
      std::snprintf(text, sizeof(text), "<0x%02X>", byte);
      made.push_back(text);
    }
    return made;
  }();
  return tokens;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  gptc::text::GgufTokenizer gguf;
  gguf.model = "gpt2";
  std::string_view rest = fuzz::text(data, size);
  while (!rest.empty()) {
    size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty())
      continue;
    char what = line[0];
    line.remove_prefix(1);
    switch (what) {
    case 'M':
      gguf.model = line;
      break;
    case 'P':
      gguf.pre = line;
      break;
    case 'R':
      gguf.architecture = line;
      break;
    case 'C':
      gguf.chatTemplate = line;
      break;
    case 'a':
      gguf.addBos = true;
      break;
    case 'A':
      gguf.addEos = true;
      break;
    case 'n':
      gguf.addSpacePrefix = false;
      break;
    case 's':
      gguf.scores.push_back(float(number(line)) / 4);
      break;
    case 'B':
      for (const std::string &token : byteTokens()) {
        gguf.tokenTypes.push_back(6);
        gguf.tokens.push_back(token);
        gguf.scores.push_back(0);
      }
      break;
    case 'u':
      gguf.unk = number(line);
      break;
    case 'm':
      gguf.merges.push_back(line);
      break;
    case 'b':
      gguf.bos = number(line);
      break;
    case 'e':
      gguf.eos = number(line);
      break;
    case 'p':
      gguf.pad = number(line);
      break;
    case 'x':
      gguf.extraEnds.push_back(number(line));
      break;
    case 't':
      if (!line.empty()) {
        gguf.tokenTypes.push_back(line[0] - '0');
        gguf.tokens.push_back(line.substr(1));
      }
      break;
    }
  }
  std::string error;
  if (auto read = gptc::text::tokenizerFromGguf(gguf, error))
    fuzz::requireUsable(*read);
  else
    fuzz::requireMessage(error);
  return 0;
}
