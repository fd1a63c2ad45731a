// PTX as it is written: what the parser makes of a module's text. Names are
// resolved (registers, variables, labels), nothing else is interpreted.
// Every string_view points into the text that Module owns.
#ifndef GPTC_CUDA_EMULATOR_SYNTAX_H
#define GPTC_CUDA_EMULATOR_SYNTAX_H

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace emu {

enum class Space : uint8_t { Generic, Global, Shared, Local, Const, Param };

enum class Ty : uint8_t {
  None,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  B8,
  B16,
  B32,
  B64,
  B128,
  U16x2,
  S16x2,
  F16,
  F16x2,
  BF16,
  BF16x2,
  TF32,
  F32,
  F64,
  Pred,
};

Ty typeOf(std::string_view word); // "u32" -> U32; None if it is no type
int bitsOf(Ty type);              // 1 for a predicate

struct Register {
  Ty type = Ty::None;
  int32_t slot = -1; // byte offset in a frame, given when first used
};

struct Relocation {
  uint64_t offset;
  std::string_view symbol;
  int64_t addend;
};

struct Variable {
  std::string_view name;
  Space space = Space::Global;
  Ty type = Ty::None;
  uint32_t align = 1;
  uint64_t size = 0; // bytes; 0 for an extern array of unknown length
  bool isExtern = false;
  std::vector<uint8_t> init; // empty: zeroes
  std::vector<Relocation> relocations;
  uint64_t address = 0; // in its space, once laid out
};

struct Function;

struct Operand {
  enum Kind : uint8_t {
    Reg,     // reg
    Special, // text: %tid.x
    Int,     // bits
    Float,   // bits: a double's, or a float's where single
    Symbol,  // var (or text, the name of a function), offset
    Label,   // offset: the statement
    Address, // [reg or var or nothing + offset]
    Vector,  // {a, b, ...}
    Pair,    // a|b
    List,    // (a, b, ...)
    Sink,    // _
  };
  Kind kind = Int;
  bool negated = false; // !p
  bool single = false;  // 0f...
  int32_t reg = -1;
  const Variable *var = nullptr;
  std::string_view text;
  int64_t offset = 0;
  uint64_t bits = 0; // Int: the value
  std::vector<Operand> elems;
};

struct Location { // a .loc
  uint32_t file = 0, line = 0, column = 0;
  int32_t inlinedAt = -1; // index of the location of the call
};

struct Statement {
  std::string_view text;               // the whole, for messages
  std::vector<std::string_view> parts; // ld, global, f32
  std::vector<Operand> operands;
  int32_t guard = -1; // register of @p
  bool guardNegated = false;
  uint32_t line = 0;
  int32_t loc = -1;

  std::string_view name() const { return parts[0]; }
  bool has(std::string_view part) const {
    for (std::string_view p : parts)
      if (p == part)
        return true;
    return false;
  }
};

struct BranchTable { // .branchtargets
  std::string_view name;
  std::vector<Operand> targets; // labels
};

struct Function {
  std::string_view name;
  bool isEntry = false, hasBody = false;
  std::vector<std::unique_ptr<Variable>> params, results, locals;
  std::vector<Register> registers;
  std::vector<Statement> body;
  std::vector<BranchTable> branchTables;
  std::vector<std::unique_ptr<Statement>> extras; // made by the builder
  uint32_t maxThreads[3] = {0, 0, 0};             // .maxntid
  uint32_t requiredThreads[3] = {0, 0, 0};        // .reqntid
};

struct Source { // one parsed module
  std::string text;
  int version = 0, target = 0; // 90, 80
  std::vector<std::unique_ptr<Variable>> variables;
  std::vector<std::unique_ptr<Function>> functions;
  std::vector<Location> locations;
  std::vector<std::string> files; // by number

  const Function *function(std::string_view name) const;
  const Variable *variable(std::string_view name) const;
  // "norm.cu:12", "half.h:3 inlined at norm.cu:12", or "" if not known.
  std::string where(int32_t loc) const;
};

// Throws Error(InvalidPtx) with the line.
std::unique_ptr<Source> parse(std::string text);

} // namespace emu

#endif // GPTC_CUDA_EMULATOR_SYNTAX_H
