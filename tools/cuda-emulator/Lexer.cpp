// Cuts PTX text into tokens. Opcodes with their modifiers are one word, since
// no modifier means anything by itself.
#include "Lexer.h"
#include "Error.h"

#include <bit>
#include <charconv>
#include <cstdlib>
#include <fmt/format.h>

namespace emu {

void syntaxError(uint32_t line, std::string_view message) {
  // A token may be the whole text.
  throw Error(InvalidPtx,
              fmt::format("PTX line {}: {}", line, message.substr(0, 400)));
}

static bool isWordStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == '$' || c == '%' || c == '.';
}
static bool isDigit(char c) { return c >= '0' && c <= '9'; }
static bool isWordPart(char c) {
  return isDigit(c) || (isWordStart(c) && c != '%');
}

void Lexer::skipBlank() {
  while (at < text.size()) {
    char c = text[at];
    if (c == '\n') {
      ++line, ++at;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
      ++at;
    } else if (text.substr(at, 2) == "//") {
      while (at < text.size() && text[at] != '\n')
        ++at;
    } else if (text.substr(at, 2) == "/*") {
      uint32_t begin = line;
      size_t end = text.find("*/", at + 2);
      if (end == std::string_view::npos)
        syntaxError(begin, "expected */ before the end of the text");
      for (; at < end + 2; ++at)
        line += text[at] == '\n';
    } else {
      return;
    }
  }
}

Token Lexer::number() {
  Token token;
  token.kind = Token::Number;
  token.line = line;
  size_t begin = at;
  char second = at + 1 < text.size() ? text[at + 1] : 0;
  auto digits = [&](int base, size_t skip) {
    const char *first = text.data() + at + skip;
    const char *last = text.data() + text.size();
    auto [end, error] = std::from_chars(first, last, token.bits, base);
    if (error != std::errc())
      syntaxError(line, "expected a number of at most 64 bits");
    at = end - text.data();
  };
  if (text[at] == '0' &&
      (second == 'f' || second == 'F' || second == 'd' || second == 'D')) {
    bool single = second == 'f' || second == 'F';
    size_t length = single ? 8 : 16;
    digits(16, 2);
    if (at - begin != 2 + length)
      syntaxError(line, fmt::format("expected {} hexadecimal digits", length));
    token.isFloat = true;
    token.isSingle = single;
  } else if (text[at] == '0' && (second == 'x' || second == 'X')) {
    digits(16, 2);
  } else if (text[at] == '0' && (second == 'b' || second == 'B')) {
    digits(2, 2);
  } else {
    size_t end = at;
    while (end < text.size() && isDigit(text[end]))
      ++end;
    bool decimal = end < text.size() &&
                   (text[end] == '.' || text[end] == 'e' || text[end] == 'E');
    if (decimal) {
      double value;
      auto [stop, error] =
          std::from_chars(text.data() + at, text.data() + text.size(), value);
      if (error != std::errc())
        syntaxError(line, "expected a number that a double holds");
      token.isFloat = true;
      token.bits = std::bit_cast<uint64_t>(value);
      at = stop - text.data();
    } else {
      digits(text[at] == '0' && end - at > 1 ? 8 : 10, 0);
    }
  }
  if (at < text.size() && text[at] == 'U')
    ++at;
  token.text = text.substr(begin, at - begin);
  if (at < text.size() && isWordPart(text[at]))
    syntaxError(line, fmt::format("expected a number, got '{}{}'", token.text,
                                  text[at]));
  return token;
}

Token Lexer::next() {
  skipBlank();
  Token token;
  token.line = line;
  if (at >= text.size())
    return token;
  char c = text[at];
  size_t begin = at;
  if (isWordStart(c)) {
    ++at;
    while (at < text.size()) {
      if (c == '.' && text[at] == '.')
        break; // .reg.b32 are two directives
      if (isWordPart(text[at]))
        ++at;
      else if (text.substr(at, 2) == "::")
        at += 2;
      else
        break;
    }
    token.kind = Token::Word;
    token.text = text.substr(begin, at - begin);
    return token;
  }
  if (isDigit(c))
    return number();
  if (c == '"') {
    size_t end = text.find('"', at + 1);
    if (end == std::string_view::npos)
      syntaxError(line, "expected a closing quote");
    token.kind = Token::String;
    token.text = text.substr(at + 1, end - at - 1);
    for (char in : token.text)
      line += in == '\n';
    at = end + 1;
    return token;
  }
  static constexpr std::string_view puncts = "{}[](),;:+-|!@<>=*&~/";
  if (puncts.find(c) == std::string_view::npos)
    syntaxError(line, fmt::format("unexpected character 0x{:02x}",
                                  static_cast<unsigned char>(c)));
  token.kind = Token::Punct;
  token.punct = c;
  token.text = text.substr(at++, 1);
  return token;
}

} // namespace emu
