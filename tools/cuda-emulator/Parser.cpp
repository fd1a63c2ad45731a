// The parser for modules: directives, variables, functions. ParseBody.cpp has
// the statements.
#include "Parser.h"
#include "Error.h"

#include <bit>
#include <cstring>
#include <fmt/format.h>

namespace emu {

std::unique_ptr<Source> parse(std::string text) {
  return Parser(std::move(text)).run();
}

Parser::Parser(std::string text) : source(new Source), lexer("") {
  source->text = std::move(text);
  lexer = Lexer(source->text);
}

void Parser::fail(std::string_view message) const {
  syntaxError(token.line,
              fmt::format("{}, got '{}'", message,
                          token.kind == Token::End ? "the end" : token.text));
}

void Parser::advance() {
  if (token.kind != Token::End)
    previousEnd = token.text.data() + token.text.size() - source->text.data();
  token = lexer.next();
}

bool Parser::isPunct(char c) const {
  return token.kind == Token::Punct && token.punct == c;
}
bool Parser::accept(char c) {
  if (!isPunct(c))
    return false;
  advance();
  return true;
}
void Parser::expect(char c) {
  if (!accept(c))
    fail(fmt::format("expected '{}'", c));
}
bool Parser::isWord(std::string_view word) const {
  return token.kind == Token::Word && token.text == word;
}
bool Parser::acceptWord(std::string_view word) {
  if (!isWord(word))
    return false;
  advance();
  return true;
}
std::string_view Parser::word(std::string_view what) {
  if (token.kind != Token::Word)
    fail(fmt::format("expected {}", what));
  std::string_view text = token.text;
  advance();
  return text;
}
uint64_t Parser::integer(std::string_view what) {
  bool negative = accept('-');
  if (token.kind != Token::Number || token.isFloat)
    fail(fmt::format("expected {}", what));
  uint64_t value = token.bits;
  advance();
  return negative ? -value : value;
}

std::unique_ptr<Source> Parser::run() {
  advance();
  while (token.kind != Token::End)
    moduleItem();
  if (!source->target)
    fail("expected a .target directive");
  return std::move(source);
}

void Parser::moduleItem() {
  if (acceptWord(".version")) {
    // A decimal number: 9.0
    if (token.kind != Token::Number)
      fail("expected a version");
    double version = std::bit_cast<double>(token.bits);
    source->version = token.isFloat && version > 0 && version < 100
                          ? static_cast<int>(version * 10 + 0.5)
                          : 0;
    return advance();
  }
  if (acceptWord(".target")) {
    std::string_view target = word("a target");
    if (target.substr(0, 3) != "sm_" || target.size() < 5 || target.size() > 8)
      fail("expected a target sm_NN before");
    if (source->target)
      fail("expected one .target directive, not a second before");
    for (char c : target.substr(3)) {
      if (c < '0' || c > '9')
        break; // sm_90a
      source->target = source->target * 10 + (c - '0');
    }
    while (accept(','))
      word("a target option");
    return;
  }
  if (acceptWord(".address_size")) {
    if (integer("an address size") != 64)
      fail("expected addresses of 64 bits before");
    return;
  }
  if (acceptWord(".file"))
    return file();
  if (acceptWord(".section"))
    return section();
  if (isWord(".loc"))
    return location();
  if (acceptWord(".pragma")) {
    advance();
    return expect(';');
  }
  bool isExtern = false;
  while (isWord(".visible") || isWord(".extern") || isWord(".weak") ||
         isWord(".common")) {
    isExtern |= isWord(".extern");
    advance();
  }
  if (acceptWord(".entry"))
    return function(true);
  if (acceptWord(".func"))
    return function(false);
  if (acceptWord(".global"))
    return declarations(Space::Global, isExtern);
  if (acceptWord(".shared"))
    return declarations(Space::Shared, isExtern);
  if (acceptWord(".const"))
    return declarations(Space::Const, isExtern);
  if (accept(';'))
    return;
  fail("expected a directive that the emulator knows");
}

void Parser::file() {
  uint64_t number = integer("a file number");
  if (token.kind != Token::String || number > 100000)
    fail("expected a file number and a name");
  if (source->files.size() <= number)
    source->files.resize(number + 1);
  source->files[number] = std::string(token.text);
  advance();
  while (accept(','))
    integer("a time or size");
}

void Parser::location() {
  advance();
  Location at;
  at.file = integer("a file number");
  at.line = integer("a line");
  at.column = integer("a column");
  while (accept(',')) {
    if (acceptWord("function_name")) {
      word("a label");
      if (accept('+'))
        integer("an offset");
    } else if (acceptWord("inlined_at")) {
      uint32_t file = integer("a file number"), line = integer("a line"),
               column = integer("a column");
      // The call is the nearest location before that says the same.
      auto &all = source->locations;
      for (size_t i = all.size(); i-- > 0 && at.inlinedAt < 0;)
        if (all[i].file == file && all[i].line == line &&
            all[i].column == column)
          at.inlinedAt = i;
      if (at.inlinedAt < 0) {
        all.push_back({file, line, column, -1});
        at.inlinedAt = all.size() - 1;
      }
    } else {
      fail("expected function_name or inlined_at");
    }
  }
  loc = source->locations.size();
  source->locations.push_back(at);
}

void Parser::section() {
  word("a section's name");
  expect('{');
  while (!isPunct('}')) {
    if (token.kind == Token::End)
      fail("expected '}'");
    advance();
  }
  advance();
}

// --- variables ---

std::unique_ptr<Variable> Parser::declarator(Space space) {
  auto variable = std::make_unique<Variable>();
  variable->space = space;
  uint64_t vector = 1;
  while (token.kind == Token::Word && token.text[0] == '.') {
    std::string_view text = token.text;
    advance();
    if (text == ".align") {
      uint64_t align = integer("an alignment");
      if (align == 0 || align > 4096 || (align & (align - 1)))
        fail("expected a power of two up to 4096 before");
      variable->align = align;
    } else if (text == ".v2" || text == ".v4") {
      vector = text[2] - '0';
    } else if (text == ".ptr" || text == ".attribute" || text == ".global" ||
               text == ".shared" || text == ".local" || text == ".const") {
      if (text == ".attribute") {
        expect('(');
        while (!accept(')'))
          advance(), token.kind == Token::End ? fail("expected ')'") : void();
      }
    } else if (Ty type = typeOf(text.substr(1)); type != Ty::None) {
      variable->type = type;
    } else {
      fail(fmt::format("expected a type before, not {}", text));
    }
  }
  if (variable->type == Ty::None || variable->type == Ty::Pred)
    fail("expected the type of a variable");
  variable->name = word("a variable's name");
  uint64_t bytes = bitsOf(variable->type) / 8 * vector;
  variable->align = std::max<uint32_t>(variable->align, bytes);
  uint64_t size = bytes;
  while (accept('[')) {
    uint64_t count = isPunct(']') ? 0 : integer("an array's size");
    expect(']');
    if (count && size > (1ull << 34) / count)
      fail("expected a variable of at most 16 GiB before");
    size *= count;
  }
  variable->size = size;
  return variable;
}

void Parser::element(Variable &variable, uint64_t index) {
  uint64_t bytes = bitsOf(variable.type) / 8;
  uint64_t at = index * bytes;
  if (bytes == 0 || bytes > 8 || at + bytes > variable.size)
    fail("expected fewer elements than that");
  if (isPunct('{'))
    fail("expected the elements in one list");
  variable.init.resize(at + bytes); // zeros follow
  uint64_t bits = 0;
  Operand value;
  bool generic = acceptWord("generic");
  if (generic)
    expect('(');
  value = operand();
  if (generic)
    expect(')');
  if (accept('+'))
    value.offset = uint64_t(value.offset) + integer("an offset");
  if (value.kind == Operand::Int) {
    bits = value.bits;
  } else if (value.kind == Operand::Float) {
    double number = std::bit_cast<double>(value.bits);
    if (value.single)
      bits = bytes == 8 ? std::bit_cast<uint64_t>(static_cast<double>(
                              std::bit_cast<float>(uint32_t(value.bits))))
                        : value.bits;
    else
      bits = bytes == 8 ? value.bits
                        : std::bit_cast<uint32_t>(static_cast<float>(number));
  } else if (value.kind == Operand::Symbol && bytes == 8) {
    variable.relocations.push_back(
        {at, value.var ? value.var->name : value.text, value.offset});
  } else {
    fail("expected a number or the address of a variable before");
  }
  std::memcpy(variable.init.data() + at, &bits, bytes);
}

void Parser::initialiser(Variable &variable) {
  if (isPunct('{')) {
    advance();
    uint64_t index = 0;
    if (!isPunct('}'))
      do
        element(variable, index++);
      while (accept(','));
    return expect('}');
  }
  element(variable, 0);
}

void Parser::declarations(Space space, bool isExtern) {
  auto variable = declarator(space);
  variable->isExtern = isExtern;
  if (accept('='))
    initialiser(*variable);
  expect(';');
  Variable *made = variable.get();
  if (!current) {
    if (source->variable(made->name))
      fail(fmt::format("expected one variable {}", made->name));
    source->variables.push_back(std::move(variable));
    return;
  }
  if (!scopes[scope].variables.emplace(made->name, made).second)
    fail(fmt::format("expected one variable {}", made->name));
  current->locals.push_back(std::move(variable));
}

// --- functions ---

void Parser::paramList(std::vector<std::unique_ptr<Variable>> &params) {
  expect('(');
  if (accept(')'))
    return;
  do {
    if (acceptWord(".reg"))
      fail("expected parameters in .param space");
    if (!acceptWord(".param"))
      fail("expected .param");
    params.push_back(declarator(Space::Param));
  } while (accept(','));
  expect(')');
}

void Parser::tuning(Function &function) {
  auto three = [&](uint32_t (&to)[3]) {
    to[0] = integer("a number of threads");
    to[1] = to[2] = 1;
    for (int i = 1; i < 3 && accept(','); ++i)
      to[i] = integer("a number of threads");
  };
  while (token.kind == Token::Word && token.text[0] == '.') {
    if (acceptWord(".maxntid"))
      three(function.maxThreads);
    else if (acceptWord(".reqntid"))
      three(function.requiredThreads);
    else if (acceptWord(".minnctapersm") || acceptWord(".maxnreg") ||
             acceptWord(".maxnctapersm"))
      integer("a number");
    else if (acceptWord(".noreturn"))
      ;
    else if (acceptWord(".pragma"))
      advance(), expect(';');
    else
      fail("expected a directive of functions that the emulator knows");
  }
}

void Parser::function(bool isEntry) {
  auto made = std::make_unique<Function>();
  made->isEntry = isEntry;
  if (isPunct('('))
    paramList(made->results);
  made->name = word("a function's name");
  if (isPunct('('))
    paramList(made->params);
  tuning(*made);
  auto &all = source->functions;
  if (accept(';')) { // a declaration
    if (!source->function(made->name))
      all.push_back(std::move(made));
    return;
  }
  made->hasBody = true;
  current = made.get();
  if (const Function *before = source->function(made->name)) {
    if (before->hasBody)
      fail(fmt::format("expected one function {}", made->name));
    for (auto &slot : all)
      if (slot.get() == before)
        slot = std::move(made);
  } else {
    all.push_back(std::move(made));
  }
  body();
  current = nullptr;
}

} // namespace emu
