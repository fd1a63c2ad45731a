//===- NearestName.h - what a misspelt name may have meant ------*- C++ -*-===//
#ifndef GPTC_DIALECT_GPT_NEARESTNAME_H
#define GPTC_DIALECT_GPT_NEARESTNAME_H

#include "llvm/ADT/StringRef.h"

namespace gptc {

/// The nearest of `known` within three letters of `name` (farther away is
/// another word), else empty. The first of equally near ones.
template <typename Range>
llvm::StringRef nearestName(llvm::StringRef name, const Range &known) {
  llvm::StringRef nearest;
  unsigned best = 4;
  for (llvm::StringRef candidate : known)
    if (unsigned distance = candidate.edit_distance(name, true, best);
        distance < best) {
      best = distance;
      nearest = candidate;
    }
  return nearest;
}

} // namespace gptc

#endif // GPTC_DIALECT_GPT_NEARESTNAME_H
