//===- ExactDouble.cpp - the shortest text of a double --------------------===//
#include "gptc/Dialect/Gpt/ExactDouble.h"
#include "llvm/Support/Format.h"
#include <charconv>
#include <cmath>
#include <string>

void gptc::gpt::printExactly(llvm::raw_ostream &os, double value) {
  if (!std::isfinite(value)) {
    os << llvm::format_hex(llvm::bit_cast<uint64_t>(value), 18,
                           /*Upper=*/true);
    return;
  }
  char digits[32];
  std::to_chars_result end =
      std::to_chars(digits, digits + sizeof(digits), value);
  std::string text(digits, end.ptr);
  // MLIR reads a number as a float only if it has a point.
  if (text.find('.') == std::string::npos) {
    size_t exponent = text.find('e');
    text.insert(exponent == std::string::npos ? text.size() : exponent, ".0");
  }
  // 1.0e-05 and 1.0e+05 as people write them, 1.0e-5 and 1.0e5.
  if (size_t exponent = text.find('e'); exponent != std::string::npos) {
    size_t digit = exponent + 1;
    if (text[digit] == '+')
      text.erase(digit, 1);
    else
      ++digit;
    while (digit + 1 < text.size() && text[digit] == '0')
      text.erase(digit, 1);
  }
  os << text;
}
