//===- ExactDouble.h - doubles that keep their bits -------------*- C++ -*-===//
//
// A double inside an attribute (compared and hashed by its bits), and the text
// of a double that the MLIR parser reads back to the same bits.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/raw_ostream.h"

namespace gptc::gpt {

/// A double that can be a key: -0.0 and 0.0 differ, a NaN equals itself.
struct ExactDouble {
  double value = 0.0;
  ExactDouble() = default;
  ExactDouble(double value) : value(value) {}
  operator double() const { return value; }
  uint64_t bits() const { return llvm::bit_cast<uint64_t>(value); }
  bool operator==(const ExactDouble &other) const {
    return bits() == other.bits();
  }
};

inline llvm::hash_code hash_value(const ExactDouble &number) {
  return llvm::hash_value(number.bits());
}

/// Prints the shortest decimal that reads back to the same bits (1.0e-05,
/// 0.125, 10000.0); infinities and NaNs as a hexadecimal bit pattern.
void printExactly(llvm::raw_ostream &os, double value);

} // namespace gptc::gpt
