// The parser for function bodies: registers, labels, statements, operands.
#include "Error.h"
#include "Parser.h"

#include <bit>
#include <fmt/format.h>

namespace emu {

void Parser::body() {
  expect('{');
  scopes.assign(1, {});
  scopes[0].parent = -1;
  scope = 0;
  loc = -1;
  for (auto *list : {&current->params, &current->results})
    for (auto &param : *list)
      scopes[0].variables.emplace(param->name, param.get());
  while (true) {
    if (token.kind == Token::End)
      fail("expected '}'");
    if (accept('{')) {
      if (scopes.size() > 1000000)
        fail("expected fewer scopes");
      Scope inner;
      inner.parent = scope;
      scope = scopes.size();
      scopes.push_back(std::move(inner));
    } else if (accept('}')) {
      scope = scopes[scope].parent;
      if (scope < 0)
        break;
    } else {
      statement();
    }
  }
  for (Statement &statement : current->body)
    for (Operand &operand : statement.operands)
      resolveLabels(operand);
  for (BranchTable &table : current->branchTables)
    for (Operand &target : table.targets)
      resolveLabels(target);
}

// A name that is no register or variable is looked up among the labels of its
// scope (whose number is in reg) and those around it.
void Parser::resolveLabels(Operand &operand) {
  for (Operand &elem : operand.elems)
    resolveLabels(elem);
  if (operand.kind != Operand::Symbol || operand.var)
    return;
  for (int at = operand.reg; at >= 0; at = scopes[at].parent) {
    auto found = scopes[at].labels.find(operand.text);
    if (found != scopes[at].labels.end()) {
      operand.kind = Operand::Label;
      operand.offset = found->second;
      return;
    }
  }
}

void Parser::registers() {
  Ty type = Ty::None;
  while (token.kind == Token::Word && token.text[0] == '.') {
    type = typeOf(token.text.substr(1));
    if (type == Ty::None || type == Ty::B128)
      fail("expected a register's type of at most 64 bits");
    advance();
  }
  if (type == Ty::None)
    fail("expected a register's type");
  do {
    std::string_view name = word("a register's name");
    if (accept('<')) {
      uint64_t count = integer("a number of registers");
      expect('>');
      if (count > 10000000)
        fail("expected fewer registers");
      scopes[scope].ranges[name] = {type, static_cast<uint32_t>(count), -1, {}};
    } else {
      if (!scopes[scope]
               .registers.emplace(name, current->registers.size())
               .second)
        fail(fmt::format("expected one register {}", name));
      current->registers.push_back({type, -1});
    }
  } while (accept(','));
  expect(';');
}

Operand Parser::name(std::string_view text) {
  Operand operand;
  operand.text = text;
  if (text == "_") {
    operand.kind = Operand::Sink;
    return operand;
  }
  size_t digits = text.size();
  while (digits > 0 && text[digits - 1] >= '0' && text[digits - 1] <= '9')
    --digits;
  for (int at = scope; at >= 0; at = scopes[at].parent) {
    Scope &in = scopes[at];
    if (auto found = in.registers.find(text); found != in.registers.end()) {
      operand.kind = Operand::Reg;
      operand.reg = found->second;
      return operand;
    }
    if (digits < text.size() && text.size() - digits < 9) {
      auto found = in.ranges.find(text.substr(0, digits));
      uint32_t number = 0;
      for (char c : text.substr(digits))
        number = number * 10 + (c - '0');
      if (found != in.ranges.end() && number < found->second.count) {
        auto [used, isNew] =
            found->second.used.emplace(number, current->registers.size());
        if (isNew)
          current->registers.push_back({found->second.type, -1});
        operand.kind = Operand::Reg;
        operand.reg = used->second;
        return operand;
      }
    }
    if (auto found = in.variables.find(text); found != in.variables.end()) {
      operand.kind = Operand::Symbol;
      operand.var = found->second;
      return operand;
    }
  }
  if (text[0] == '%') {
    operand.kind = Operand::Special;
    return operand;
  }
  operand.kind = Operand::Symbol;
  operand.var = source->variable(text);
  operand.reg = scope; // see resolveLabels
  return operand;
}

Operand Parser::immediate() {
  Operand operand;
  bool negative = accept('-');
  if (token.kind != Token::Number)
    fail("expected a number");
  operand.kind = token.isFloat ? Operand::Float : Operand::Int;
  operand.single = token.isSingle;
  operand.bits = token.bits;
  if (negative) {
    if (operand.kind == Operand::Int)
      operand.bits = -operand.bits;
    else
      operand.bits ^= operand.single ? 1ull << 31 : 1ull << 63;
  }
  advance();
  return operand;
}

Operand Parser::address() {
  Operand operand;
  operand.kind = Operand::Address;
  if (token.kind == Token::Word) {
    Operand base = name(token.text);
    advance();
    if (base.kind != Operand::Reg &&
        !(base.kind == Operand::Symbol && base.var))
      fail(fmt::format("expected a register or a variable, not {}, as the "
                       "address before",
                       base.text));
    operand.reg = base.kind == Operand::Reg ? base.reg : -1;
    operand.var = base.var;
  } else {
    operand.offset = immediate().bits;
  }
  while (isPunct('+') || isPunct('-')) {
    bool minus = isPunct('-');
    advance();
    uint64_t offset = integer("an offset");
    operand.offset = uint64_t(operand.offset) + (minus ? -offset : offset);
  }
  expect(']');
  return operand;
}

Operand Parser::primary() {
  if (token.kind == Token::Number || isPunct('-'))
    return immediate();
  if (token.kind == Token::Word) {
    Operand operand = name(token.text);
    advance();
    if (operand.kind == Operand::Symbol && isPunct('+')) {
      advance();
      operand.offset = uint64_t(operand.offset) + integer("an offset");
    }
    return operand;
  }
  char open = token.kind == Token::Punct ? token.punct : 0;
  if (open == '[') {
    advance();
    return address();
  }
  if (open == '{' || open == '(') {
    if (++depth > 4)
      fail("expected a shallower operand");
    advance();
    Operand operand;
    operand.kind = open == '{' ? Operand::Vector : Operand::List;
    char close = open == '{' ? '}' : ')';
    if (!isPunct(close))
      do
        operand.elems.push_back(this->operand());
      while (accept(','));
    expect(close);
    --depth;
    return operand;
  }
  fail("expected an operand");
}

Operand Parser::operand() {
  bool negated = accept('!');
  Operand operand = primary();
  operand.negated = negated;
  if (accept('|')) {
    Operand pair;
    pair.kind = Operand::Pair;
    pair.elems.push_back(std::move(operand));
    pair.elems.push_back(primary());
    return pair;
  }
  return operand;
}

void Parser::label(std::string_view name) {
  expect(':');
  if (acceptWord(".branchtargets")) {
    BranchTable table;
    table.name = name;
    do
      table.targets.push_back(operand());
    while (accept(','));
    expect(';');
    current->branchTables.push_back(std::move(table));
    return;
  }
  if (!scopes[scope].labels.emplace(name, current->body.size()).second)
    fail(fmt::format("expected one label {}", name));
}

void Parser::statement() {
  if (accept(';'))
    return;
  if (token.kind == Token::Word && token.text[0] == '.') {
    std::string_view text = token.text;
    if (text == ".loc")
      return location();
    advance();
    if (text == ".reg")
      return registers();
    if (text == ".local")
      return declarations(Space::Local, false);
    if (text == ".shared")
      return declarations(Space::Shared, false);
    if (text == ".param")
      return declarations(Space::Param, false);
    if (text == ".global")
      return declarations(Space::Global, false);
    if (text == ".const")
      return declarations(Space::Const, false);
    if (text == ".pragma") {
      advance();
      return expect(';');
    }
    fail(fmt::format("expected a directive that the emulator knows, not {}",
                     text));
  }
  Statement made;
  made.line = token.line;
  made.loc = loc;
  size_t begin = token.text.data() - source->text.data();
  if (accept('@')) {
    made.guardNegated = accept('!');
    Operand guard = name(word("a predicate"));
    if (guard.kind != Operand::Reg ||
        current->registers[guard.reg].type != Ty::Pred)
      fail("expected a predicate before");
    made.guard = guard.reg;
  }
  std::string_view opcode = word("an instruction");
  if (isPunct(':') && made.guard < 0)
    return label(opcode);
  size_t at = 0;
  while (at <= opcode.size()) {
    size_t dot = opcode.find('.', at);
    // The dot of L2::128B and the like is no separator.
    if (dot == std::string_view::npos)
      dot = opcode.size();
    if (dot == at)
      fail(fmt::format("expected a modifier after a dot in {}", opcode));
    made.parts.push_back(opcode.substr(at, dot - at));
    at = dot + 1;
  }
  while (!isPunct(';')) {
    made.operands.push_back(operand());
    // Calls separate their lists like operands; so does everything else.
    if (!accept(',') && !isPunct(';'))
      fail("expected ',' or ';'");
  }
  made.text = std::string_view(source->text).substr(begin, previousEnd - begin);
  advance();
  if (current->body.size() > 10000000)
    fail("expected fewer instructions");
  current->body.push_back(std::move(made));
}

} // namespace emu
