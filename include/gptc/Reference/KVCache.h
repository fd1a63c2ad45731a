//===- KVCache.h - keys and values as the definition has them ---*- C++ -*-===//
//
// Unpaged and unbounded: one growing list of rows per layer and sequence. It
// fixes what pages must be equivalent to:
//
//   - Tokens of a step arrive in the order of its rows. The first token of a
//     sequence in a step, at position p, truncates the sequence to p; each
//     further one continues it. A position beyond the end is refused.
//   - Keys and values are truncated and grow separately, so that an op that
//     appends keys first and values later sees no difference.
//
//===----------------------------------------------------------------------===//

#ifndef GPTC_REFERENCE_KVCACHE_H
#define GPTC_REFERENCE_KVCACHE_H

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gptc::reference {

class KVCache {
public:
  enum Part { Keys, Values };

  KVCache(int64_t layers, int64_t heads, int64_t headDim)
      : numLayers(layers), numHeads(heads), dim(headDim) {}

  int64_t layers() const { return numLayers; }
  /// KV heads.
  int64_t heads() const { return numHeads; }
  int64_t headDim() const { return dim; }

  /// Appends one step: rows [T, heads * headDim] of keys or values of `layer`;
  /// row t goes to position positions[t] of sequence sequences[t]. Returns a
  /// message, and changes nothing, when an index is out of range or a position
  /// leaves a gap.
  std::optional<std::string> append(Part part, int64_t layer,
                                    llvm::ArrayRef<double> rows,
                                    llvm::ArrayRef<int64_t> positions,
                                    llvm::ArrayRef<int64_t> sequences);

  /// [positions, heads * headDim]; empty for a sequence that holds nothing.
  llvm::ArrayRef<double> rows(Part part, int64_t layer, int64_t sequence) const;
  /// Positions held.
  int64_t length(Part part, int64_t layer, int64_t sequence) const;

  /// The one sequence that the newest append wrote; nothing when it wrote
  /// several or none was made.
  std::optional<int64_t> currentSequence() const { return current; }

private:
  int64_t numLayers, numHeads, dim;
  std::map<std::pair<int64_t, int64_t>, std::vector<double>> parts[2];
  std::optional<int64_t> current;
};

} // namespace gptc::reference

#endif // GPTC_REFERENCE_KVCACHE_H
