// Cuts PTX text into tokens.
#ifndef GPTC_CUDA_EMULATOR_LEXER_H
#define GPTC_CUDA_EMULATOR_LEXER_H

#include <cstdint>
#include <string_view>

namespace emu {

struct Token {
  enum Kind : uint8_t {
    End,
    Word,   // ld.global.f32, %tid.x, .reg, $L__BB0_2
    Number, // bits; isFloat: the bits of a double
    String, // without its quotes
    Punct,  // one character
  };
  Kind kind = End;
  bool isFloat = false;
  bool isSingle = false; // 0f: bits is the float's own
  char punct = 0;
  std::string_view text;
  uint64_t bits = 0;
  uint32_t line = 1;
};

class Lexer {
public:
  explicit Lexer(std::string_view text) : text(text) {}
  Token next();

private:
  void skipBlank();
  Token number();
  std::string_view text;
  size_t at = 0;
  uint32_t line = 1;
};

[[noreturn]] void syntaxError(uint32_t line, std::string_view message);

} // namespace emu

#endif // GPTC_CUDA_EMULATOR_LEXER_H
