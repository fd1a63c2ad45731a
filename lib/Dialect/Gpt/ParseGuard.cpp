//===- ParseGuard.cpp - nesting of MLIR text ------------------------------===//
//
// One pass over the characters, with what little of the lexer decides where a
// string or a comment ends. Three things make MLIR recurse: brackets, operators
// of an affine expression, and aliases that name aliases. And three ops of the
// tensor and vector dialects take memory for as many operands as their type has
// elements.
//
//===----------------------------------------------------------------------===//
#include "gptc/Dialect/Gpt/ParseGuard.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using llvm::StringRef;

namespace {
// An affine expression is parsed with one call per operator.
constexpr unsigned operatorLimit = 1000;

class Scanner {
public:
  Scanner(StringRef text, unsigned limit, std::string &error)
      : text(text), limit(limit), error(error) {}
  bool run();

private:
  char next() const { return i + 1 < text.size() ? text[i + 1] : '\0'; }
  void skipString();
  void skipComment();
  bool scanAlias();
  bool scanWord();
  bool fail(const llvm::Twine &rule);
  bool tooMany(StringRef what, unsigned most);

  StringRef text;
  unsigned limit;
  std::string &error;
  size_t i = 0, lineStart = 0;
  unsigned line = 1, depth = 0, operators = 0;
  llvm::StringMap<unsigned> aliases; // how many definitions deep each one is
  StringRef defined;                 // the alias whose definition this is
};
} // namespace

// A string ends on its line; a backslash hides a quote.
void Scanner::skipString() {
  for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i)
    if (text[i] == '\\')
      ++i;
  if (i < text.size() && text[i] == '\n')
    --i;
}

void Scanner::skipComment() {
  size_t end = text.find('\n', i);
  i = (end == StringRef::npos ? text.size() : end) - 1;
}

bool Scanner::fail(const llvm::Twine &rule) {
  error = (llvm::Twine(line) + ":" + llvm::Twine(i - lineStart + 1) +
           ": error: expected " + rule)
              .str();
  return false;
}

bool Scanner::tooMany(StringRef what, unsigned most) {
  return fail(what + " at most " + llvm::Twine(most) + " deep, got more");
}

static bool inWord(char c) {
  return llvm::isAlnum(c) || c == '_' || c == '.' || c == '$';
}

/// At the first letter of a keyword or of an op's name, or at the sigil of a
/// value, symbol or block.
bool Scanner::scanWord() {
  StringRef word =
      text.substr(i, 1 + text.drop_front(i + 1).take_while(inWord).size());
  if (word == "tensor.from_elements" || word == "vector.from_elements" ||
      word == "vector.to_elements")
    return fail("no " + word +
                ", whose parser takes memory for every element that a type "
                "claims; write it in the generic form");
  i += word.size() - 1;
  return true;
}

/// At a # or !: `#name =` starts a definition, another name is a use in it.
bool Scanner::scanAlias() {
  StringRef name =
      text.substr(i, 1 + text.drop_front(i + 1).take_while(inWord).size());
  StringRef rest = text.substr(i + name.size()).ltrim(" \t\r\n");
  if (rest.starts_with("=") && !rest.starts_with("==")) {
    defined = name;
    aliases[defined] = 1;
  } else if (auto used = aliases.find(name); name != defined &&
                                             used != aliases.end() &&
                                             used->second >= aliases[defined]) {
    aliases[defined] = used->second + 1;
    if (used->second >= limit)
      return tooMany("aliases of aliases", limit);
  }
  i += name.size() - 1;
  return true;
}

bool Scanner::run() {
  for (; i < text.size(); ++i) {
    switch (text[i]) {
    case '\n':
      ++line;
      lineStart = i + 1;
      break;
    case '"':
      skipString();
      break;
    case '/':
      if (next() == '/')
        skipComment();
      break;
    case '#':
    case '!':
      if (!scanAlias())
        return false;
      break;
    case '(':
    case '[':
    case '{':
    case '<':
      operators = 0;
      if (++depth > limit)
        return tooMany("brackets nested", limit);
      break;
    case ')':
    case ']':
    case '}':
    case '>':
      operators = 0;
      depth -= depth != 0;
      break;
    case ',':
    case ':':
    case '=':
      operators = 0;
      break;
    case '-':
      if (next() == '>') { // an arrow closes nothing
        ++i;
        break;
      }
      [[fallthrough]];
    case '+':
    case '*':
      if (++operators > operatorLimit)
        return tooMany("operators of an expression", operatorLimit);
      break;
    default:
      if ((llvm::isAlpha(text[i]) || text[i] == '%' || text[i] == '@' ||
           text[i] == '^') &&
          !scanWord())
        return false;
      break;
    }
  }
  return true;
}

bool gptc::bracketDepthOk(StringRef text, unsigned limit, std::string &error) {
  return Scanner(text, limit, error).run();
}
