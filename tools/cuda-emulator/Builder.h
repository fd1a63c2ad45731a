// Makes ops of a function's statements: gives registers their places in the
// frame, immediates theirs in the pool of constants, and asks the families of
// ops (exec/) which handler runs a statement.
#ifndef GPTC_CUDA_EMULATOR_BUILDER_H
#define GPTC_CUDA_EMULATOR_BUILDER_H

#include "Machine.h"

#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>

namespace emu {

class Pool { // constants, each 32 times
public:
  int32_t add(uint64_t bits, int width);
  AlignedBytes data;

private:
  std::unordered_map<uint64_t, int32_t> known[3];
};

class Builder {
public:
  Builder(const Source &source, Function &function, Code &code, Pool &pool,
          const std::function<const Code *(std::string_view)> &codeOf)
      : source(source), function(function), code(code), pool(pool),
        codeOf(codeOf) {}
  void layOutLocals(); // of every function, before any runs
  void run();

  // For the families. All of them throw where an operand does not fit.
  [[noreturn]] void fail(const std::string &text) const;
  // How many operands there are.
  void expectCount(size_t least, size_t most) const;
  void expectCount(size_t count) const { expectCount(count, count); }
  const Operand &operand(size_t i) const;
  // A register of exactly that type's width, or an immediate.
  int32_t in(const Operand &operand, Ty type);
  int32_t in(size_t i, Ty type) { return in(operand(i), type); }
  // A register of at least the type's width; its width goes to `bits`.
  int32_t inWide(const Operand &operand, Ty type, int &bits);
  int32_t out(const Operand &operand, Ty type);
  int32_t out(size_t i, Ty type) { return out(operand(i), type); }
  int32_t outWide(const Operand &operand, Ty type, int &bits);
  // A predicate that is read: its register; op.negate says whether !p.
  int32_t inPred(const Operand &operand);
  int32_t outPred(const Operand &operand);
  int32_t scratch(); // 256 bytes that nobody reads
  // Sets the op's base and offset from [a + b].
  void address(const Operand &operand, Op &op, Space space);
  uint64_t immediate(size_t i) const; // an integer
  Ty type(std::string_view part) const;
  Ty lastType() const; // of the opcode
  Ty registerType(const Operand &operand) const;
  bool isRegister(const Operand &operand) const {
    return operand.kind == Operand::Reg;
  }
  bool isKernelParam(const Variable &variable) const;
  uint32_t target(const Operand &operand); // a label's op, set at the end
  const Code *callee(std::string_view name) const { return codeOf(name); }
  Op &push(Op op);

  const Source &source;
  Function &function;
  Code &code;
  const Statement *statement = nullptr;
  std::optional<Op> after; // an op to follow this one

private:
  int32_t slot(int32_t reg);
  int32_t special(const Operand &operand, Ty type);
  Pool &pool;
  const std::function<const Code *(std::string_view)> &codeOf;
  int32_t scratchSlot = -1;
};

// The handlers of one level of vector instructions: fills in the op, or
// returns false for a statement that no family knows.
using BuildOp = bool (*)(Builder &, const Statement &, Op &);
BuildOp buildOpForThisHost();

} // namespace emu

#endif // GPTC_CUDA_EMULATOR_BUILDER_H
