//===- BytePairMerger.h - Merging the symbols of one piece ----------------===//
//
// Byte-pair encoding of a piece by a list of merges: the order of a pair is the
// rank of its merge (PairMerging.h).
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

  /// Merges `symbols` (token ids, fewer than 2^31).
  void merge(std::vector<int32_t> &symbols) const;
  /// The same, leaving -1 for what was joined into its left neighbour. Symbols
  /// below -1 stand for what has no token and are never joined.
  void mergeInPlace(std::vector<int32_t> &symbols) const;

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
