//===- TemplateParser.h - From tokens to a syntax tree --------------------===//
//
// Recursive descent with Jinja's precedences: conditional, or, and, not,
// comparison, + -, ~, * / // %, sign, postfix, filters and tests. Nesting is
// counted, of what is parsed and of what is made, so recursion is bounded.
// After the first error all parsing stops: current() is then the End token.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_LIB_RUNTIME_TEXT_TEMPLATEPARSER_H
#define GPTC_LIB_RUNTIME_TEXT_TEMPLATEPARSER_H

#include "TemplateLexer.h"
#include "TemplateSyntax.h"
#include <algorithm>
#include <fmt/format.h>

namespace gptc::text::chat {

class Parser {
public:
  Parser(std::vector<Token> tokens, std::string &error)
      : tokens(std::move(tokens)), error(error) {}

  Body run() {
    Body body = parseBody();
    if (error.empty() && current().kind != Token::End)
      fail(fmt::format("unexpected tag '{}'", current().text));
    return body;
  }

private:
  const Token &current() const {
    return tokens[error.empty() ? at : tokens.size() - 1];
  }
  const Token &ahead() const {
    return tokens[error.empty() ? std::min(at + 1, tokens.size() - 1)
                                : tokens.size() - 1];
  }
  void next() { at = std::min(at + 1, tokens.size() - 1); }
  void fail(std::string message) {
    if (error.empty())
      error = fmt::format("line {}: {}", tokens[at].line, message);
  }
  bool is(Token::Kind kind, std::string_view text) const {
    return current().kind == kind && current().text == text;
  }
  bool isOperator(std::string_view text) const {
    return is(Token::Operator, text);
  }
  bool take(Token::Kind kind, std::string_view text) {
    bool found = is(kind, text);
    if (found)
      next();
    return found;
  }
  bool takeOperator(std::string_view text) {
    return take(Token::Operator, text);
  }
  void expect(Token::Kind kind, std::string_view text) {
    if (!take(kind, text))
      fail(fmt::format("expected '{}', got '{}'", text, describe()));
  }
  void expectEnd(Token::Kind kind) {
    if (current().kind == kind)
      next();
    else
      fail(fmt::format("expected the end of the tag, got '{}'", describe()));
  }
  std::string describe() const {
    const Token &token = current();
    return token.kind == Token::Integer ? std::to_string(token.value)
           : token.kind == Token::BlockEnd || token.kind == Token::PrintEnd
               ? "the end of the tag"
           : token.kind == Token::End ? "the end of the template"
                                      : token.text.substr(0, 60);
  }
  std::string expectName() {
    std::string name = current().text;
    if (current().kind != Token::Name) {
      fail(fmt::format("expected a name, got '{}'", describe()));
      return {};
    }
    next();
    return name;
  }

  Body parseBody();
  void parseBlock(Body &body);
  void parseIf(Body &body);
  void parseFor(Body &body);
  void parseSet(Body &body);
  /// `{% end... %}` of a block whose name was read.
  void expectClosing(std::string_view name) {
    if (current().kind == Token::BlockBegin)
      next();
    expect(Token::Name, name);
    expectEnd(Token::BlockEnd);
  }

  ExpressionPtr parseExpression(bool conditional = true);
  ExpressionPtr parseOr();
  ExpressionPtr parseAnd();
  ExpressionPtr parseNot();
  ExpressionPtr parseCompare();
  ExpressionPtr parseSum();
  ExpressionPtr parseConcatenation();
  ExpressionPtr parseProduct();
  ExpressionPtr parseUnary(bool filters = true);
  ExpressionPtr parsePrimary();
  ExpressionPtr parsePostfix(ExpressionPtr value);
  ExpressionPtr parseFilters(ExpressionPtr value);
  ExpressionPtr parseTest(ExpressionPtr value);
  ExpressionPtr parseSubscript(ExpressionPtr value);
  ExpressionPtr parseString();
  void parseArguments(Expression &call);
  void parseItems(Expression &list, std::string_view close);

  template <typename... Operands>
  ExpressionPtr make(Expression::Kind kind, Operands... operands) {
    auto made = std::make_unique<Expression>();
    made->kind = kind;
    made->line = current().line;
    (add(*made, std::move(operands)), ...);
    return made;
  }
  void add(Expression &to, ExpressionPtr operand) {
    if (operand)
      to.depth = std::max(to.depth, operand->depth + 1);
    if (to.depth > maxDepth)
      fail(fmt::format("more than {} nested operations", maxDepth));
    to.operands.push_back(std::move(operand));
  }
  /// Counts nested brackets, signs and blocks while they are parsed.
  struct Level {
    Parser &parser;
    explicit Level(Parser &parser) : parser(parser) {
      if (++parser.level > maxDepth)
        parser.fail(fmt::format("more than {} nested levels", maxDepth));
    }
    ~Level() { --parser.level; }
  };

  std::vector<Token> tokens;
  std::string &error;
  size_t at = 0;
  unsigned level = 0;
};

} // namespace gptc::text::chat

#endif // GPTC_LIB_RUNTIME_TEXT_TEMPLATEPARSER_H
