//===- BytePairMerger.cpp - Merging the bytes of one piece ----------------===//
#include "BytePairMerger.h"
#include <bit>
#include <queue>

namespace gptc::text {

static uint64_t pairKey(uint32_t left, uint32_t right) {
  return uint64_t(left) << 32 | right;
}

/// Fibonacci hashing: the top bits of the product index the table.
static size_t slotOf(uint64_t pair, unsigned shift) {
  return (pair ^ pair >> 29) * 0x9E3779B97F4A7C15 >> shift;
}

BytePairMerger::BytePairMerger(std::span<const Merge> merges) {
  slots.resize(std::bit_ceil(2 * merges.size() + 2));
  shift = 64 - std::countr_zero(slots.size());
  for (size_t rank = 0; rank < merges.size(); ++rank) {
    uint64_t pair = pairKey(merges[rank].left, merges[rank].right);
    size_t at = slotOf(pair, shift);
    while (slots[at].pair != UINT64_MAX && slots[at].pair != pair)
      at = (at + 1) % slots.size();
    slots[at] = {pair, uint32_t(rank), merges[rank].merged};
  }
}

const BytePairMerger::Slot *BytePairMerger::find(int32_t left,
                                                 int32_t right) const {
  uint64_t pair = pairKey(left, right);
  for (size_t at = slotOf(pair, shift); slots[at].pair != UINT64_MAX;
       at = (at + 1) % slots.size())
    if (slots[at].pair == pair)
      return &slots[at];
  return nullptr;
}

void BytePairMerger::merge(std::vector<int32_t> &symbols) const {
  if (symbols.size() < 2)
    return;
  // Neighbours of each live symbol by index; a symbol joined into its left
  // neighbour becomes -1. `end` stands for "none" on both sides.
  constexpr uint32_t end = UINT32_MAX;
  size_t count = symbols.size();
  std::vector<uint32_t> previous(count), next(count);
  struct Entry {
    uint64_t order; ///< rank << 32 | index of the left symbol
    uint64_t pair;  ///< the ids when it was queued
    bool operator<(const Entry &other) const { return order > other.order; }
  };
  std::vector<Entry> queued;
  auto entryAt = [&](uint32_t at, auto queue) {
    const Slot *slot = find(symbols[at], symbols[next[at]]);
    if (slot)
      queue(Entry{uint64_t(slot->rank) << 32 | at, slot->pair});
  };
  for (uint32_t i = 0; i < count; ++i) {
    previous[i] = i == 0 ? end : i - 1;
    next[i] = i + 1 == count ? end : i + 1;
    if (next[i] != end)
      entryAt(i, [&](Entry entry) { queued.push_back(entry); });
  }
  std::priority_queue<Entry> heap({}, std::move(queued));
  auto push = [&](Entry entry) { heap.push(entry); };
  while (!heap.empty()) {
    Entry best = heap.top();
    heap.pop();
    uint32_t at = uint32_t(best.order), right = next[at];
    // Stale if either side was merged since.
    if (symbols[at] < 0 || right == end ||
        pairKey(symbols[at], symbols[right]) != best.pair)
      continue;
    symbols[at] = int32_t(find(symbols[at], symbols[right])->merged);
    symbols[right] = -1;
    next[at] = next[right];
    if (next[at] != end) {
      previous[next[at]] = at;
      entryAt(at, push);
    }
    if (previous[at] != end)
      entryAt(previous[at], push);
  }
  std::erase(symbols, -1);
}

} // namespace gptc::text
