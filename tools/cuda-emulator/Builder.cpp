// Makes ops of statements.
#include "Builder.h"

#include <bit>
#include <fmt/format.h>

namespace emu {

int32_t Pool::add(uint64_t bits, int width) {
  int kind = width <= 16 ? 0 : width == 32 ? 1 : 2;
  size_t bytes = 2u << kind;
  if (bytes < 8)
    bits &= (1ull << bytes * 8) - 1;
  auto [found, isNew] = known[kind].emplace(bits, data.size());
  if (isNew) {
    data.resize(data.size() + bytes * 32);
    for (int lane = 0; lane < 32; ++lane)
      std::memcpy(data.data() + found->second + lane * bytes, &bits, bytes);
    data.resize((data.size() + 63) / 64 * 64);
  }
  return ~found->second;
}

void Builder::fail(const std::string &text) const {
  std::string where = source.where(statement->loc);
  std::string one;
  for (char c : statement->text.substr(0, 400))
    one += c == '\n' || c == '\t' ? ' ' : c;
  throw Error(InvalidPtx,
              fmt::format("function {}, {}{}PTX line {} '{}': {}",
                          function.name, where, where.empty() ? "" : ", ",
                          statement->line, one, text));
}

void Builder::expectCount(size_t least, size_t most) const {
  size_t count = statement->operands.size();
  if (count < least || count > most)
    fail(fmt::format("expected {} operands, got {}", least, count));
}

const Operand &Builder::operand(size_t i) const {
  if (i >= statement->operands.size())
    fail(fmt::format("expected at least {} operands, got {}", i + 1,
                     statement->operands.size()));
  return statement->operands[i];
}

int32_t Builder::slot(int32_t reg) {
  Register &at = function.registers[reg];
  if (at.slot < 0) {
    int bits = bitsOf(at.type);
    uint32_t bytes = bits == 1 ? 64 : std::max(bits, 16) * 4;
    at.slot = code.frameBytes;
    code.frameBytes += bytes;
    if (code.frameBytes > 1u << 28)
      fail("expected registers of less than 8 MiB a thread");
  }
  return at.slot;
}

int32_t Builder::scratch() {
  if (scratchSlot < 0) {
    scratchSlot = code.frameBytes;
    code.frameBytes += 256;
  }
  return scratchSlot;
}

static int widthOf(Ty type) {
  int bits = bitsOf(type);
  return bits == 8 ? 16 : bits;
}

Ty Builder::registerType(const Operand &operand) const {
  return operand.kind == Operand::Reg ? function.registers[operand.reg].type
                                      : Ty::None;
}

int32_t Builder::in(const Operand &operand, Ty type) {
  int width = widthOf(type);
  if (operand.negated)
    fail("expected '!' before predicates only");
  switch (operand.kind) {
  case Operand::Reg: {
    int bits = widthOf(registerType(operand));
    if (bits != width)
      fail(fmt::format("expected a register of {} bits, got one of {}", width,
                       bits));
    return slot(operand.reg);
  }
  case Operand::Int:
    if (type == Ty::F32 || type == Ty::F64)
      fail("expected a floating-point number");
    return pool.add(operand.bits, width);
  case Operand::Float: {
    float single =
        operand.single
            ? std::bit_cast<float>(static_cast<uint32_t>(operand.bits))
            : static_cast<float>(std::bit_cast<double>(operand.bits));
    if (width == 64)
      return pool.add(operand.single
                          ? std::bit_cast<uint64_t>(static_cast<double>(single))
                          : operand.bits,
                      64);
    if (width == 32)
      return pool.add(std::bit_cast<uint32_t>(single), 32);
    fail("expected no number of 16 bits written as a float");
  }
  case Operand::Special:
  case Operand::Symbol:
    return special(operand, type);
  default:
    fail("expected a register or a number");
  }
}

int32_t Builder::inWide(const Operand &operand, Ty type, int &bits) {
  bits = widthOf(type);
  if (operand.kind == Operand::Reg) {
    bits = widthOf(registerType(operand));
    if (bits < bitsOf(type))
      fail(fmt::format("expected a register of at least {} bits, got one of "
                       "{}",
                       bitsOf(type), bits));
    return slot(operand.reg);
  }
  return in(operand, type);
}

int32_t Builder::out(const Operand &operand, Ty type) {
  if (operand.kind == Operand::Sink)
    return scratch();
  if (operand.kind != Operand::Reg)
    fail("expected a register for the result");
  int width = widthOf(type), bits = widthOf(registerType(operand));
  if (bits != width)
    fail(fmt::format("expected a register of {} bits for the result, got one "
                     "of {}",
                     width, bits));
  return slot(operand.reg);
}

int32_t Builder::outWide(const Operand &operand, Ty type, int &bits) {
  bits = widthOf(type);
  if (operand.kind == Operand::Reg) {
    bits = widthOf(registerType(operand));
    if (bits < bitsOf(type))
      fail(fmt::format("expected a register of at least {} bits for the "
                       "result, got one of {}",
                       bitsOf(type), bits));
    return slot(operand.reg);
  }
  return out(operand, type);
}

int32_t Builder::inPred(const Operand &operand) {
  if (registerType(operand) != Ty::Pred)
    fail("expected a predicate");
  return slot(operand.reg);
}

int32_t Builder::outPred(const Operand &operand) {
  if (operand.kind == Operand::Sink)
    return scratch();
  return inPred(operand);
}

// What is no register is moved to one first.
int32_t Builder::special(const Operand &operand, Ty type) {
  static const std::string_view parts[] = {"mov", "b16", "b32", "b64"};
  int width = widthOf(type);
  int32_t at = code.frameBytes;
  code.frameBytes += std::max(width * 4, 64);
  Statement *move = new Statement; // lives as long as the function
  function.extras.emplace_back(move);
  move->text = statement->text;
  move->line = statement->line;
  move->loc = statement->loc;
  move->parts = {parts[0], parts[width == 16 ? 1 : width == 32 ? 2 : 3]};
  Operand to;
  to.kind = Operand::Reg;
  to.reg = function.registers.size();
  function.registers.push_back({width == 16   ? Ty::B16
                                : width == 32 ? Ty::B32
                                              : Ty::B64,
                                at});
  move->operands = {to, operand};
  const Statement *outer = statement;
  statement = move;
  Op op;
  op.statement = move;
  if (!buildOpForThisHost()(*this, *move, op))
    fail("expected an operand that the emulator knows");
  push(std::move(op));
  statement = outer;
  return at;
}

uint64_t Builder::immediate(size_t i) const {
  if (operand(i).kind != Operand::Int)
    fail(fmt::format("expected an integer as operand {}", i + 1));
  return operand(i).bits;
}

Ty Builder::type(std::string_view part) const {
  Ty type = typeOf(part);
  if (type == Ty::None)
    fail(fmt::format("expected a type, got .{}", part));
  return type;
}

Ty Builder::lastType() const {
  for (size_t i = statement->parts.size(); i-- > 1;)
    if (Ty type = typeOf(statement->parts[i]); type != Ty::None)
      return type;
  fail("expected a type in the opcode");
}

void Builder::address(const Operand &operand, Op &op, Space space) {
  if (operand.kind != Operand::Address)
    fail("expected an address in brackets");
  op.space = space;
  op.imm = operand.offset;
  op.hasBase = false;
  if (operand.var) {
    const Variable &variable = *operand.var;
    if (variable.space != space &&
        !(space == Space::Generic && variable.space == Space::Global))
      fail(
          fmt::format("expected {} in the space of the access", variable.name));
    op.imm += variable.address;
    // Parameters of functions lie in local memory, those of kernels do not.
    op.ofFrame = variable.space == Space::Local ||
                 (variable.space == Space::Param && !isKernelParam(variable));
    return;
  }
  if (operand.reg < 0)
    return;
  op.hasBase = true;
  int bits = bitsOf(function.registers[operand.reg].type);
  if (bits != 32 && bits != 64)
    fail("expected an address of 32 or 64 bits");
  op.wideBase = bits == 64;
  op.a = slot(operand.reg);
}

uint32_t Builder::target(const Operand &operand) {
  if (operand.kind != Operand::Label)
    fail("expected a label of this function");
  return operand.offset; // a statement, until run() makes it an op
}

Op &Builder::push(Op op) {
  code.ops.push_back(std::move(op));
  return code.ops.back();
}

bool Builder::isKernelParam(const Variable &variable) const {
  if (function.isEntry)
    for (auto &param : function.params)
      if (param.get() == &variable)
        return true;
  return false;
}

void Builder::layOutLocals() {
  // Parameters of functions and of calls live beside the local variables, so
  // that each call has its own.
  auto place = [&](Variable &variable) {
    uint32_t align = std::max<uint32_t>(variable.align, 4);
    uint64_t at = (code.localBytes + align - 1) / align * align;
    if (at + variable.size > 1u << 24)
      throw Error(InvalidPtx,
                  fmt::format("function {}: expected local variables of at "
                              "most 16 MiB",
                              function.name));
    variable.address = at;
    code.localBytes = at + variable.size;
  };
  if (!function.isEntry) {
    for (auto *list : {&function.params, &function.results})
      for (auto &param : *list) {
        param->space = Space::Param;
        place(*param);
      }
  }
  for (auto &variable : function.locals)
    if (variable->space == Space::Local || variable->space == Space::Param)
      place(*variable);
}

void Builder::run() {
  std::vector<uint32_t> opOf; // of a statement
  BuildOp build = buildOpForThisHost();
  for (const Statement &at : function.body) {
    statement = &at;
    opOf.push_back(code.ops.size());
    Op op;
    op.statement = &at;
    if (!build(*this, at, op))
      fail(fmt::format("expected an instruction that the emulator knows, got "
                       "{}",
                       at.parts[0]));
    if (at.guard >= 0) {
      op.guard = slot(at.guard);
      op.guardNegated = at.guardNegated;
    }
    if (after) {
      after->guard = op.guard;
      after->guardNegated = op.guardNegated;
    }
    push(std::move(op));
    if (after)
      push(std::move(*after));
    after.reset();
  }
  opOf.push_back(code.ops.size());
  static const Statement end = [] {
    static const std::string_view text = "ret";
    Statement made;
    made.text = text;
    made.parts = {text};
    return made;
  }();
  statement = &end;
  Op op;
  build(*this, end, op);
  push(std::move(op));
  for (Op &made : code.ops)
    if (made.isJump)
      made.imm = opOf[made.imm];
  for (auto &table : code.tables)
    for (uint32_t &target : table)
      target = opOf[target];
}

} // namespace emu
