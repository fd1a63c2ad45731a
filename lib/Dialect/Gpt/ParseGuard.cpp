//===- ParseGuard.cpp - bracket depth of MLIR text ------------------------===//
#include "gptc/Dialect/Gpt/ParseGuard.h"

bool gptc::bracketDepthOk(llvm::StringRef text, unsigned limit,
                          std::string &error) {
  unsigned depth = 0, line = 1;
  size_t lineStart = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
    case '\n':
      ++line;
      lineStart = i + 1;
      break;
    case '/': // a comment reaches to the end of its line
      if (i + 1 < text.size() && text[i + 1] == '/') {
        size_t end = text.find('\n', i);
        i = (end == llvm::StringRef::npos ? text.size() : end) - 1;
      }
      break;
    case '"': // a string ends on its line; a backslash hides a quote
      for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i)
        if (text[i] == '\\')
          ++i;
      if (i < text.size() && text[i] == '\n')
        --i;
      break;
    case '(':
    case '[':
    case '{':
    case '<':
      if (++depth > limit) {
        error = std::to_string(line) + ":" + std::to_string(i - lineStart + 1) +
                ": error: expected brackets nested at most " + std::to_string(limit) +
                " deep, got more";
        return false;
      }
      break;
    case '-': // an arrow closes nothing
      if (i + 1 < text.size() && text[i + 1] == '>')
        ++i;
      break;
    case ')':
    case ']':
    case '}':
    case '>':
      if (depth != 0)
        --depth;
      break;
    default:
      break;
    }
  }
  return true;
}
