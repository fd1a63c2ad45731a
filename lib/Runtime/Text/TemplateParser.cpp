//===- TemplateParser.cpp - The syntax tree of a chat template ------------===//
//
// Recursive descent with Jinja's precedences: conditional, or, and, not,
// comparison, + -, ~, * / // %, sign, postfix, filters and tests. After the
// first error all parsing stops: current() is then the End token.
//
//===----------------------------------------------------------------------===//
#include "TemplateLexer.h"
#include "TemplateSyntax.h"
#include <algorithm>
#include <fmt/format.h>

namespace gptc::text::chat {

using Kind = Expression::Kind;

namespace {
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
  ExpressionPtr make(Kind kind, Operands... operands) {
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
} // namespace

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

/// Up to the end or a tag that closes or continues a block, whose BlockBegin is
/// read.
Body Parser::parseBody() {
  Level nested(*this);
  Body body;
  while (current().kind != Token::End) {
    Statement statement{.kind = Statement::Data, .line = current().line};
    if (current().kind == Token::Data) {
      statement.text = current().text;
      next();
      body.push_back(std::move(statement));
    } else if (current().kind == Token::PrintBegin) {
      next();
      statement.kind = Statement::Print;
      statement.expression = parseExpression();
      expectEnd(Token::PrintEnd);
      body.push_back(std::move(statement));
    } else {
      next(); // the BlockBegin
      static constexpr std::string_view closing[] = {"elif", "else", "endif",
                                                     "endfor", "endgeneration"};
      if (std::ranges::find(closing, current().text) != std::end(closing))
        return body;
      parseBlock(body);
    }
  }
  return body;
}

void Parser::parseBlock(Body &body) {
  unsigned line = current().line;
  std::string name = expectName();
  if (name == "if")
    return parseIf(body);
  if (name == "for")
    return parseFor(body);
  if (name == "set")
    return parseSet(body);
  if (name == "break" || name == "continue") {
    body.push_back(
        {.kind = name == "break" ? Statement::Break : Statement::Continue,
         .line = line});
    return expectEnd(Token::BlockEnd);
  }
  if (name == "generation") { // marks what a model is trained on; no output
    expectEnd(Token::BlockEnd);
    for (Statement &inner : parseBody())
      body.push_back(std::move(inner));
    return expectClosing("endgeneration");
  }
  fail(fmt::format("the tag '{}' is not supported; expected if, for, set, "
                   "break, continue or generation",
                   name));
}

void Parser::parseIf(Body &body) {
  Statement statement{.kind = Statement::If, .line = current().line};
  bool last = false;
  do {
    ExpressionPtr condition = last ? nullptr : parseExpression();
    expectEnd(Token::BlockEnd);
    Branch branch{std::move(condition), parseBody()};
    statement.branches.push_back(std::move(branch));
    if (last)
      break;
    last = is(Token::Name, "else");
  } while (take(Token::Name, "elif") || take(Token::Name, "else"));
  expectClosing("endif");
  body.push_back(std::move(statement));
}

void Parser::parseFor(Body &body) {
  Statement statement{.kind = Statement::For, .line = current().line};
  statement.names.push_back(expectName());
  if (takeOperator(","))
    statement.names.push_back(expectName());
  expect(Token::Name, "in");
  statement.expression = parseExpression(/*conditional=*/false);
  if (take(Token::Name, "if"))
    statement.filter = parseExpression();
  if (is(Token::Name, "recursive"))
    fail("recursive loops are not supported");
  expectEnd(Token::BlockEnd);
  statement.branches.push_back({nullptr, parseBody()});
  if (take(Token::Name, "else")) {
    expectEnd(Token::BlockEnd);
    statement.branches.push_back({nullptr, parseBody()});
  }
  expectClosing("endfor");
  body.push_back(std::move(statement));
}

void Parser::parseSet(Body &body) {
  Statement statement{.kind = Statement::Set, .line = current().line};
  statement.names.push_back(expectName());
  if (takeOperator("."))
    statement.names.push_back(expectName());
  if (current().kind == Token::BlockEnd)
    return fail("blocks of 'set' are not supported; expected 'set name = "
                "value'");
  expect(Token::Operator, "=");
  statement.expression = parseExpression();
  expectEnd(Token::BlockEnd);
  body.push_back(std::move(statement));
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

ExpressionPtr Parser::parseExpression(bool conditional) {
  Level nested(*this);
  ExpressionPtr value = parseOr();
  while (conditional && take(Token::Name, "if")) {
    ExpressionPtr condition = parseOr(), otherwise;
    if (take(Token::Name, "else"))
      otherwise = parseExpression();
    value = make(Kind::Conditional, std::move(condition), std::move(value),
                 std::move(otherwise));
  }
  return value;
}

ExpressionPtr Parser::parseOr() {
  ExpressionPtr left = parseAnd();
  while (take(Token::Name, "or"))
    left = make(Kind::Or, std::move(left), parseAnd());
  return left;
}

ExpressionPtr Parser::parseAnd() {
  ExpressionPtr left = parseNot();
  while (take(Token::Name, "and"))
    left = make(Kind::And, std::move(left), parseNot());
  return left;
}

ExpressionPtr Parser::parseNot() {
  Level nested(*this);
  if (take(Token::Name, "not"))
    return make(Kind::Not, parseNot());
  return parseCompare();
}

ExpressionPtr Parser::parseCompare() {
  ExpressionPtr left = parseSum();
  bool compared = false;
  for (;;) {
    std::string op;
    for (std::string_view known : {"==", "!=", "<=", ">=", "<", ">"})
      if (op.empty() && takeOperator(known))
        op = known;
    if (op.empty() && take(Token::Name, "in"))
      op = "in";
    if (op.empty() && is(Token::Name, "not") && ahead().kind == Token::Name &&
        ahead().text == "in") {
      next();
      next();
      op = "not in";
    }
    if (op.empty())
      return left;
    if (compared)
      fail("chains of comparisons are not supported");
    compared = true;
    left = make(Kind::Compare, std::move(left), parseSum());
    left->name = op;
  }
}

ExpressionPtr Parser::parseSum() {
  ExpressionPtr left = parseConcatenation();
  while (isOperator("+") || isOperator("-")) {
    std::string op = current().text;
    next();
    left = make(Kind::Arithmetic, std::move(left), parseConcatenation());
    left->name = op;
  }
  return left;
}

ExpressionPtr Parser::parseConcatenation() {
  ExpressionPtr left = parseProduct();
  while (takeOperator("~"))
    left = make(Kind::Concatenate, std::move(left), parseProduct());
  return left;
}

ExpressionPtr Parser::parseProduct() {
  ExpressionPtr left = parseUnary();
  while (isOperator("*") || isOperator("/") || isOperator("//") ||
         isOperator("%")) {
    std::string op = current().text;
    next();
    left = make(Kind::Arithmetic, std::move(left), parseUnary());
    left->name = op;
  }
  return left;
}

ExpressionPtr Parser::parseUnary(bool filters) {
  Level nested(*this);
  ExpressionPtr value;
  if (takeOperator("-"))
    value = make(Kind::Negate, parseUnary(/*filters=*/false));
  else
    value = parsePrimary();
  value = parsePostfix(std::move(value));
  return filters ? parseFilters(std::move(value)) : std::move(value);
}

ExpressionPtr Parser::parseString() {
  ExpressionPtr value = make(Kind::String);
  for (; current().kind == Token::String; next()) // neighbours are one string
    value->name += current().text;
  return value;
}

ExpressionPtr Parser::parsePrimary() {
  const Token token = current();
  const size_t start = at;
  if (token.kind == Token::String)
    return parseString();
  ExpressionPtr value = make(Kind::Name);
  value->name = token.text;
  value->value = token.value;
  next();
  if (token.kind == Token::Integer) {
    value->kind = Kind::Integer;
  } else if (token.kind == Token::Name) {
    bool isTrue = token.text == "true" || token.text == "True";
    if (isTrue || token.text == "false" || token.text == "False") {
      value->kind = Kind::Boolean;
      value->value = isTrue;
    } else if (token.text == "none" || token.text == "None") {
      value->kind = Kind::None;
    }
  } else if (token.kind == Token::Operator && token.text == "(") {
    value->kind = Kind::List;
    parseItems(*value, ")");
    // In brackets alone a value is itself; with a comma it is a list.
    if (value->operands.size() == 1 && !value->value)
      return std::move(value->operands[0]);
  } else if (token.kind == Token::Operator && token.text == "[") {
    value->kind = Kind::List;
    parseItems(*value, "]");
  } else if (token.kind == Token::Operator && token.text == "{") {
    value->kind = Kind::Dict;
    parseItems(*value, "}");
  } else {
    at = start;
    fail(fmt::format("expected a value, got '{}'", describe()));
  }
  return value;
}

/// The items of a list or dict up to `close`; `list.value` is 1 if there was a
/// comma.
void Parser::parseItems(Expression &list, std::string_view close) {
  list.value = 0;
  while (error.empty() && !takeOperator(close)) {
    add(list, parseExpression());
    if (list.kind == Kind::Dict) {
      expect(Token::Operator, ":");
      add(list, parseExpression());
    }
    if (takeOperator(","))
      list.value = 1;
    else if (!isOperator(close))
      expect(Token::Operator, close);
  }
}

ExpressionPtr Parser::parsePostfix(ExpressionPtr value) {
  for (;;) {
    if (takeOperator(".")) {
      value = make(Kind::Attribute, std::move(value));
      value->name = expectName();
    } else if (takeOperator("[")) {
      value = parseSubscript(std::move(value));
    } else if (takeOperator("(")) {
      value = make(Kind::Call, std::move(value));
      parseArguments(*value);
    } else {
      return value;
    }
  }
}

ExpressionPtr Parser::parseSubscript(ExpressionPtr value) {
  ExpressionPtr parts[3];
  size_t part = 0;
  while (error.empty() && !isOperator("]")) {
    if (takeOperator(":")) {
      if (++part == 3)
        fail("expected at most 'from:to:step' in brackets");
    } else if (parts[part]) {
      fail(fmt::format("expected ']', got '{}'", describe()));
    } else {
      parts[part] = parseExpression();
    }
  }
  expect(Token::Operator, "]");
  if (part > 0)
    return make(Kind::Slice, std::move(value), std::move(parts[0]),
                std::move(parts[1]), std::move(parts[2]));
  if (!parts[0])
    fail("expected a value in brackets");
  return make(Kind::Index, std::move(value), std::move(parts[0]));
}

void Parser::parseArguments(Expression &call) {
  while (error.empty() && !takeOperator(")")) {
    if (current().kind == Token::Name && ahead().kind == Token::Operator &&
        ahead().text == "=") {
      call.keywords.push_back(current().text);
      next();
      next();
    } else if (!call.keywords.empty()) {
      fail("expected named arguments after a named argument");
    }
    add(call, parseExpression());
    if (!takeOperator(",") && !isOperator(")"))
      expect(Token::Operator, ")");
  }
}

ExpressionPtr Parser::parseFilters(ExpressionPtr value) {
  for (;;) {
    if (takeOperator("|")) {
      value = make(Kind::Filter, std::move(value));
      value->name = expectName();
      if (takeOperator("("))
        parseArguments(*value);
    } else if (take(Token::Name, "is")) {
      value = parseTest(std::move(value));
    } else {
      return value;
    }
  }
}

ExpressionPtr Parser::parseTest(ExpressionPtr value) {
  value = make(Kind::Test, std::move(value));
  value->value = take(Token::Name, "not");
  value->name = expectName();
  const Token &token = current();
  bool argument =
      token.kind == Token::String || token.kind == Token::Integer ||
      isOperator("[") || isOperator("{") ||
      (token.kind == Token::Name && token.text != "else" &&
       token.text != "or" && token.text != "and" && token.text != "if" &&
       token.text != "is" && token.text != "in" && token.text != "not");
  if (takeOperator("("))
    parseArguments(*value);
  else if (argument)
    add(*value, parsePostfix(parsePrimary()));
  return value;
}

std::optional<Body> parseTemplate(std::string_view source, std::string &error) {
  auto tokens = lexTemplate(source, error);
  if (!tokens)
    return std::nullopt;
  Body body = Parser(std::move(*tokens), error).run();
  if (!error.empty())
    return std::nullopt;
  return body;
}

} // namespace gptc::text::chat
