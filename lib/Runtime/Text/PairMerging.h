//===- PairMerging.h - Joining neighbours, the best pair first ------------===//
//
// What all byte-pair encodings share: of all neighbouring pairs that can be
// joined the one of lowest order, leftmost on ties, is joined, until none is
// left. A heap over a linked list: O(n log n) time, O(n) memory, no recursion.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_LIB_RUNTIME_TEXT_PAIRMERGING_H
#define GPTC_LIB_RUNTIME_TEXT_PAIRMERGING_H

#include <cstdint>
#include <queue>
#include <vector>

namespace gptc::text {

/// What joining two symbols gives.
struct Joined {
  uint32_t order = 0;  ///< lower is joined first
  int32_t symbol = -1; ///< -1: the pair cannot be joined
};

/// Joins `symbols` (fewer than 2^31, none of them -1) in place; what was
/// joined into its left neighbour becomes -1. `join(at, right, end)` gives the
/// Joined of the symbols at those two indices; the second one reaches up to
/// index `end`. It is asked again for the pair that is joined, and must give
/// the same.
template <typename Join>
void mergePairs(std::vector<int32_t> &symbols, Join join) {
  if (symbols.size() < 2)
    return;
  uint32_t count = uint32_t(symbols.size());
  // Neighbours of each live symbol by index; `count` stands for "none".
  std::vector<uint32_t> previous(count), next(count);
  struct Entry {
    uint64_t order; ///< order << 32 | index of the left symbol
    uint32_t end;   ///< where the pair ended when it was queued
    bool operator<(const Entry &other) const { return order > other.order; }
  };
  auto joinAt = [&](uint32_t at) { return join(at, next[at], next[next[at]]); };
  std::vector<Entry> queued;
  for (uint32_t i = 0; i < count; ++i) {
    previous[i] = i == 0 ? count : i - 1;
    next[i] = i + 1;
  }
  for (uint32_t i = 0; i + 1 < count; ++i)
    if (Joined joined = joinAt(i); joined.symbol != -1)
      queued.push_back({uint64_t(joined.order) << 32 | i, next[next[i]]});
  std::priority_queue<Entry> heap({}, std::move(queued));
  auto queue = [&](uint32_t at) {
    if (Joined joined = joinAt(at); joined.symbol != -1)
      heap.push({uint64_t(joined.order) << 32 | at, next[next[at]]});
  };
  while (!heap.empty()) {
    Entry best = heap.top();
    heap.pop();
    uint32_t at = uint32_t(best.order), right = next[at];
    // Stale if either side was merged since: the pair grew, or its left symbol
    // is gone.
    if (symbols[at] == -1 || right == count || next[right] != best.end)
      continue;
    symbols[at] = joinAt(at).symbol;
    symbols[right] = -1;
    next[at] = next[right];
    if (next[at] != count) {
      previous[next[at]] = at;
      queue(at);
    }
    if (previous[at] != count)
      queue(previous[at]);
  }
}

} // namespace gptc::text

#endif // GPTC_LIB_RUNTIME_TEXT_PAIRMERGING_H
