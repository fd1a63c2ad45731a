//===- TemplateExpressions.cpp - Expressions of a chat template -----------===//
#include "TemplateParser.h"

namespace gptc::text::chat {

using Kind = Expression::Kind;

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

} // namespace gptc::text::chat
