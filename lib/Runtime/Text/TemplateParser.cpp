//===- TemplateParser.cpp - Statements of a chat template -----------------===//
#include "TemplateParser.h"

namespace gptc::text::chat {

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
