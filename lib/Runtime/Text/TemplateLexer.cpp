//===- TemplateLexer.cpp - Tokens of a chat template ----------------------===//
#include "TemplateLexer.h"
#include "Unicode.h"
#include <algorithm>
#include <fmt/format.h>

namespace gptc::text::chat {

namespace {
class Lexer {
public:
  Lexer(std::string_view source, std::string &error)
      : rest(source), error(error) {}

  bool run() {
    while (!rest.empty() && error.empty()) {
      size_t tag = findTag();
      std::string_view data = rest.substr(0, tag);
      bool isTag = tag < rest.size();
      if (isTag)
        data = trimmedBefore(data, rest.substr(tag));
      if (!data.empty())
        add(Token::Data, std::string(data));
      advance(tag);
      if (isTag)
        lexTag();
    }
    add(Token::End);
    return error.empty();
  }
  std::vector<Token> tokens;

private:
  void add(Token::Kind kind, std::string text = {}, int64_t value = 0) {
    tokens.push_back({kind, std::move(text), value, line});
  }
  void fail(std::string message) {
    if (error.empty())
      error = fmt::format("line {}: {}", line, message);
  }
  void advance(size_t count) {
    std::string_view passed = rest.substr(0, count);
    line += unsigned(std::ranges::count(passed, '\n'));
    if (!passed.empty())
      lineStarts = passed.back() == '\n';
    rest.remove_prefix(passed.size());
  }
  void skipSpace() {
    advance(rest.size() - trimLeft(rest, isPythonSpace).size());
  }

  size_t findTag() const {
    for (size_t at = 0; (at = rest.find('{', at)) != std::string_view::npos;
         ++at)
      if (at + 1 < rest.size() &&
          (rest[at + 1] == '%' || rest[at + 1] == '{' || rest[at + 1] == '#'))
        return at;
    return rest.size();
  }
  std::string_view trimmedBefore(std::string_view data, std::string_view tag);
  void lexTag();
  void lexComment();
  void lexToken();
  void lexString();
  void lexNumber();
  bool consumeEnd(std::string_view end, bool trimsLine);

  std::string_view rest;
  std::string &error;
  unsigned line = 1;
  bool lineStarts = true; ///< what was read last ended a line
  size_t brackets = 0;    ///< open ones in the tag
};
} // namespace

/// What is left of `data` in front of `tag`.
std::string_view Lexer::trimmedBefore(std::string_view data,
                                      std::string_view tag) {
  char sign = tag.size() > 2 ? tag[2] : 0;
  if (sign == '-')
    return trimRight(data, isPythonSpace);
  if (sign == '+' || tag[1] == '{')
    return data;
  size_t start = data.rfind('\n') + 1; // npos + 1 is 0
  bool atLineStart = start > 0 || lineStarts;
  if (atLineStart && trimLeft(data.substr(start), isPythonSpace).empty())
    return data.substr(0, start);
  return data;
}

/// Takes `end`, with the sign before it, and the white space that goes away
/// after it.
bool Lexer::consumeEnd(std::string_view end, bool trimsLine) {
  char sign = rest.empty() ? 0 : rest[0];
  bool plus = trimsLine && sign == '+';
  if (sign == '-' || plus) {
    if (!rest.substr(1).starts_with(end))
      return false;
    advance(1 + end.size());
    if (sign == '-')
      skipSpace();
    return true;
  }
  if (!rest.starts_with(end))
    return false;
  advance(end.size());
  if (trimsLine && rest.starts_with('\n'))
    advance(1);
  return true;
}

void Lexer::lexComment() {
  for (; !rest.empty(); advance(1))
    if (consumeEnd("#}", /*trimsLine=*/true))
      return;
  fail("a comment has no end '#}'");
}

void Lexer::lexTag() {
  bool print = rest[1] == '{', comment = rest[1] == '#';
  advance(2);
  if (!comment)
    add(print ? Token::PrintBegin : Token::BlockBegin);
  if (rest.starts_with('-') || rest.starts_with('+'))
    advance(1);
  if (comment)
    return lexComment();
  brackets = 0;
  while (error.empty()) {
    skipSpace();
    if (rest.empty())
      return fail(fmt::format("a tag has no end '{}'", print ? "}}" : "%}"));
    if (brackets == 0 && consumeEnd(print ? "}}" : "%}", !print))
      return add(print ? Token::PrintEnd : Token::BlockEnd);
    lexToken();
  }
}

static bool isNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static bool isDigit(char c) { return c >= '0' && c <= '9'; }

void Lexer::lexToken() {
  char c = rest[0];
  if (isNameStart(c)) {
    size_t length = 1;
    while (length < rest.size() &&
           (isNameStart(rest[length]) || isDigit(rest[length])))
      ++length;
    if (length > 100)
      return fail("expected a name of at most 100 characters");
    add(Token::Name, std::string(rest.substr(0, length)));
    return advance(length);
  }
  if (isDigit(c))
    return lexNumber();
  if (c == '\'' || c == '"')
    return lexString();
  for (std::string_view op :
       {"==", "!=", "<=", ">=", "//", "**", "+", "-", "*", "/", "%", "~", "(",
        ")",  "[",  "]",  "{",  "}",  ",",  ".", ":", "|", "=", "<", ">"})
    if (rest.starts_with(op)) {
      if (op == "(" || op == "[" || op == "{")
        ++brackets;
      if ((op == ")" || op == "]" || op == "}") && brackets > 0)
        --brackets;
      add(Token::Operator, std::string(op));
      return advance(op.size());
    }
  fail(fmt::format("unexpected character 0x{:02x}", unsigned(uint8_t(c))));
}

void Lexer::lexNumber() {
  int64_t value = 0;
  size_t length = 0;
  for (; length < rest.size() && isDigit(rest[length]); ++length)
    if ((value = value * 10 + (rest[length] - '0')) > 1000000000000000)
      return fail("expected a number of at most 10^15");
  if (length < rest.size() &&
      (isNameStart(rest[length]) ||
       (rest[length] == '.' && length + 1 < rest.size() &&
        isDigit(rest[length + 1]))))
    return fail("only whole decimal numbers are supported");
  add(Token::Integer, {}, value);
  advance(length);
}

void Lexer::lexString() {
  char quote = rest[0];
  std::string text;
  size_t at = 1;
  for (; at < rest.size() && rest[at] != quote; ++at) {
    if (rest[at] != '\\') {
      text += rest[at];
      continue;
    }
    char escape = ++at < rest.size() ? rest[at] : 0;
    switch (escape) {
    case 'n':
      text += '\n';
      break;
    case 't':
      text += '\t';
      break;
    case 'r':
      text += '\r';
      break;
    case '\\':
    case '\'':
    case '"':
      text += escape;
      break;
    default:
      return fail("only the escapes \\n \\t \\r \\\\ \\' and \\\" are "
                  "supported in strings");
    }
  }
  if (at == rest.size())
    return fail("a string has no end");
  add(Token::String, std::move(text));
  advance(at + 1);
}

std::optional<std::vector<Token>> lexTemplate(std::string_view source,
                                              std::string &error) {
  // Line ends are one character, and the last one does not count.
  std::string lines;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n')
      continue;
    lines += source[i] == '\r' ? '\n' : source[i];
  }
  if (lines.ends_with('\n'))
    lines.pop_back();
  error.clear();
  Lexer lexer(lines, error);
  if (!lexer.run())
    return std::nullopt;
  return std::move(lexer.tokens);
}

} // namespace gptc::text::chat
