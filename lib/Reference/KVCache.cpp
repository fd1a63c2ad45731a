//===- KVCache.cpp - keys and values as the definition has them -----------===//

#include "gptc/Reference/KVCache.h"
#include <fmt/format.h>

using namespace gptc::reference;

std::optional<std::string> KVCache::append(Part part, int64_t layer,
                                           llvm::ArrayRef<double> rows,
                                           llvm::ArrayRef<int64_t> positions,
                                           llvm::ArrayRef<int64_t> sequences) {
  int64_t width = numHeads * dim, tokens = positions.size();
  if (layer < 0 || layer >= numLayers)
    return fmt::format("expected a layer below {}, got {}", numLayers, layer);
  if ((int64_t)sequences.size() != tokens ||
      (int64_t)rows.size() != tokens * width)
    return fmt::format("expected {} sequence ids and {} values for {} "
                       "positions, got {} and {}",
                       tokens, tokens * width, tokens, sequences.size(),
                       rows.size());

  // Check the whole step before changing anything.
  std::map<int64_t, int64_t> next;
  for (int64_t t = 0; t < tokens; ++t) {
    int64_t sequence = sequences[t], position = positions[t];
    if (sequence < 0)
      return fmt::format("expected a sequence id of at least 0 at row {}, "
                         "got {}",
                         t, sequence);
    auto [entry, first] = next.try_emplace(sequence, 0);
    int64_t end = first ? length(part, layer, sequence) : entry->second;
    if (position < 0 || (first ? position > end : position != end))
      return fmt::format("expected position {}{} for sequence {} at row {}, "
                         "got {}",
                         first ? "0 to " : "", end, sequence, t, position);
    entry->second = position + 1;
  }

  std::map<int64_t, bool> truncated;
  for (int64_t t = 0; t < tokens; ++t) {
    std::vector<double> &held = parts[part][{layer, sequences[t]}];
    if (!truncated[sequences[t]]) {
      held.resize(positions[t] * width);
      truncated[sequences[t]] = true;
    }
    auto row = rows.slice(t * width, width);
    held.insert(held.end(), row.begin(), row.end());
  }
  current =
      next.size() == 1 ? std::optional(next.begin()->first) : std::nullopt;
  return std::nullopt;
}

llvm::ArrayRef<double> KVCache::rows(Part part, int64_t layer,
                                     int64_t sequence) const {
  auto found = parts[part].find({layer, sequence});
  if (found == parts[part].end())
    return {};
  return found->second;
}

int64_t KVCache::length(Part part, int64_t layer, int64_t sequence) const {
  return rows(part, layer, sequence).size() / (numHeads * dim);
}
