//===- TokenizerGguf.cpp - Fuzzes the import of a GGUF's tokenizer --------===//
//
// Input: lines, each of a letter and what it gives. The first line of "t" or
// "m" may be repeated; the last of the others counts.
//   M model   P pre-tokenizer   C chat template   a adds bos
//   t token, its kind being the digit before it   m merge
//   b e p x: a number for bos, eos, pad, an extra end
//
//===----------------------------------------------------------------------===//
#include "Tokenizers.h"
#include <charconv>

static int64_t number(std::string_view text) {
  int64_t value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
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
    case 'C':
      gguf.chatTemplate = line;
      break;
    case 'a':
      gguf.addBos = true;
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
