//===- SectionEncoder.h - Ids of text between special tokens --------------===//
//
// One for each model of TokenizerData. A section is the text between two
// special tokens, which Tokenizer.cpp cuts out; it need not be valid UTF-8.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_LIB_RUNTIME_TEXT_SECTIONENCODER_H
#define GPTC_LIB_RUNTIME_TEXT_SECTIONENCODER_H

#include "gptc/Runtime/Text/TokenizerData.h"
#include <memory>

namespace gptc::text {

class SectionEncoder {
public:
  virtual ~SectionEncoder() = default;

  /// Appends the ids of `section`, which is not empty and starts at byte
  /// `offset` of the whole text. False with a message if it cannot be said.
  virtual bool encode(std::string_view section, size_t offset,
                      std::vector<int32_t> &ids, std::string &error) const = 0;
};

/// For validated data, which must outlive the result. Empty with a message if
/// the pre-tokenizer cannot be made.
std::unique_ptr<SectionEncoder> makeByteLevelEncoder(const TokenizerData &data,
                                                     std::string &error);
std::unique_ptr<SectionEncoder>
makeSentencePieceEncoder(const TokenizerData &data);

} // namespace gptc::text

#endif // GPTC_LIB_RUNTIME_TEXT_SECTIONENCODER_H
