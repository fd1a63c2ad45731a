//===- UnigramModel.h - The likeliest cut of text into tokens -------------===//
//
// Viterbi's algorithm over all cuts (Kudo, arXiv:1804.10959): of all ways to
// write the text as normal tokens the one of the largest sum of scores, the one
// with the earlier start of its last token on ties. A character that is no
// token by itself may be passed over for the lowest score less 10, as in
// SentencePiece. O(n m log V) for m the length of the longest match; O(n)
// memory; no recursion.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_LIB_RUNTIME_TEXT_UNIGRAMMODEL_H
#define GPTC_LIB_RUNTIME_TEXT_UNIGRAMMODEL_H

#include "PrefixTable.h"
#include <functional>

namespace gptc::text {

class UnigramModel {
public:
  /// `data` must outlive the model.
  explicit UnigramModel(const TokenizerData &data);

  /// Calls `part(from, to, id)` for each token of the cut in order until it
  /// gives false (then the result is false too); neighbouring characters that
  /// were passed over are one part with id -1.
  bool cut(std::string_view text,
           const std::function<bool(size_t, size_t, int32_t)> &part) const;

private:
  const TokenizerData &data;
  PrefixTable table; ///< of the normal tokens
  double passedOver; ///< score of a character without a token
};

} // namespace gptc::text

#endif // GPTC_LIB_RUNTIME_TEXT_UNIGRAMMODEL_H
