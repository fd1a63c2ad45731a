//===- BytePairMerger.cpp - Merging the symbols of one piece --------------===//
#include "BytePairMerger.h"
#include "PairMerging.h"
#include <bit>

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

void BytePairMerger::mergeInPlace(std::vector<int32_t> &symbols) const {
  mergePairs(symbols, [&](uint32_t at, uint32_t right, uint32_t) {
    const Slot *slot = find(symbols[at], symbols[right]);
    return slot ? Joined{slot->rank, int32_t(slot->merged)} : Joined{};
  });
}

void BytePairMerger::merge(std::vector<int32_t> &symbols) const {
  mergeInPlace(symbols);
  std::erase(symbols, -1);
}

} // namespace gptc::text
