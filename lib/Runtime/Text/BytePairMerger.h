//===- BytePairMerger.h - Merging the bytes of one piece ------------------===//
//
// Byte-pair encoding of a piece: of all neighbouring pairs that have a merge,
// the one of lowest rank, leftmost on ties, is joined, until none is left. A
// heap over a linked list: O(n log n) time, O(n) memory, no recursion.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_LIB_RUNTIME_TEXT_BYTEPAIRMERGER_H
#define GPTC_LIB_RUNTIME_TEXT_BYTEPAIRMERGER_H

#include "gptc/Runtime/Text/TokenizerData.h"

namespace gptc::text {

class BytePairMerger {
public:
  /// Of a pair given by two merges the later counts, as in Hugging Face's
  /// implementation.
  explicit BytePairMerger(std::span<const Merge> merges);

  /// Merges `symbols` (token ids, fewer than 2^31) in place.
  void merge(std::vector<int32_t> &symbols) const;

private:
  struct Slot {
    uint64_t pair = UINT64_MAX; ///< left << 32 | right; all ones: empty
    uint32_t rank = 0, merged = 0;
  };
  const Slot *find(int32_t left, int32_t right) const;

  std::vector<Slot> slots; ///< open addressing, at most half full
  unsigned shift = 63;     ///< 64 - log2(slots.size())
};

} // namespace gptc::text

#endif // GPTC_LIB_RUNTIME_TEXT_BYTEPAIRMERGER_H
