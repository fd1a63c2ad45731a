// The recursive-descent parser behind parse().
#ifndef GPTC_CUDA_EMULATOR_PARSER_H
#define GPTC_CUDA_EMULATOR_PARSER_H

#include "Lexer.h"
#include "Syntax.h"

#include <map>
#include <unordered_map>

namespace emu {

class Parser {
public:
  explicit Parser(std::string text);
  std::unique_ptr<Source> run();

private:
  struct Range { // .reg .b32 %r<12>
    Ty type;
    uint32_t count;
    int32_t first; // register of number 0, or -1 while none is used
    std::unordered_map<uint32_t, int32_t> used;
  };
  struct Scope {
    int parent;
    std::unordered_map<std::string_view, int32_t> registers;
    std::unordered_map<std::string_view, Range> ranges;
    std::unordered_map<std::string_view, const Variable *> variables;
    std::unordered_map<std::string_view, uint32_t> labels;
  };

  // Tokens.
  void advance();
  bool isPunct(char c) const;
  bool accept(char c);
  void expect(char c);
  bool isWord(std::string_view word) const;
  bool acceptWord(std::string_view word);
  std::string_view word(std::string_view what);
  uint64_t integer(std::string_view what);
  [[noreturn]] void fail(std::string_view message) const;

  // Module.
  void moduleItem();
  void file();
  void location();
  void section();
  void function(bool isEntry);
  void paramList(std::vector<std::unique_ptr<Variable>> &params);
  void tuning(Function &function);

  // Variables.
  std::unique_ptr<Variable> declarator(Space space);
  void declarations(Space space, bool isExtern);
  void initialiser(Variable &variable);
  void element(Variable &variable, uint64_t index);

  // Bodies.
  void body();
  void registers();
  void statement();
  void label(std::string_view name);
  Operand operand();
  Operand primary();
  Operand address();
  Operand immediate();
  Operand name(std::string_view text);
  void resolveLabels(Operand &operand);

  std::unique_ptr<Source> source;
  Lexer lexer;
  Token token;
  size_t previousEnd = 0; // where the last token ended in the text
  Function *current = nullptr;
  std::vector<Scope> scopes;
  int scope = -1;
  int32_t loc = -1;
  int depth = 0; // of nested operands
};

} // namespace emu

#endif // GPTC_CUDA_EMULATOR_PARSER_H
