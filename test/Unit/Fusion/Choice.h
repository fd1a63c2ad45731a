//===- Choice.h - decisions that a seed makes -------------------*- C++ -*-===//
//
// The numbers of the standard's Mersenne twister are fixed, those of its
// distributions are not: the same seed means the same graph everywhere.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "llvm/ADT/ArrayRef.h"
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

namespace gptc::fuzz {

class Choice {
public:
  explicit Choice(uint64_t seed) : random(seed) {}

  /// 0 .. count - 1.
  int64_t below(int64_t count) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(count));
  }
  /// first .. last.
  int64_t between(int64_t first, int64_t last) {
    return first + below(last - first + 1);
  }
  bool chance(int percent) { return below(100) < percent; }
  template <typename T> T of(std::initializer_list<T> values) {
    return values.begin()[below(static_cast<int64_t>(values.size()))];
  }
  template <typename Range> auto &in(Range &range) {
    return range[below(static_cast<int64_t>(range.size()))];
  }
  /// -1 .. 1.
  double unit() { return 2.0 * below(1 << 24) / ((1 << 24) - 1) - 1.0; }
  uint64_t seed() { return random(); }
  template <typename Range> void shuffle(Range &range) {
    for (size_t i = range.size(); i > 1; --i)
      std::swap(range[i - 1], range[below(static_cast<int64_t>(i))]);
  }

private:
  std::mt19937_64 random;
};

} // namespace gptc::fuzz
