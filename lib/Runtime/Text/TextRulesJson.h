//===- TextRulesJson.h - Recognising what is done to text by structure ----===//
//
// Hugging Face's tokenizer.json describes the normalizer, the pre-tokenizer and
// the decoder as trees of steps; this library runs some of those trees and
// knows them by shape.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_LIB_RUNTIME_TEXT_TEXTRULESJSON_H
#define GPTC_LIB_RUNTIME_TEXT_TEXTRULESJSON_H

#include "gptc/Runtime/Text/TokenizerData.h"
#include <nlohmann/json.hpp>

namespace gptc::text {

/// The members of TokenizerData that say what is done to text.
struct TextRules {
  std::string pre; ///< empty: SentencePiece's writing of spaces, no byte level
  bool nfc = false;
  bool splitAtSpaces = false;
  SpacePrefix spacePrefix = SpacePrefix::None;
  /// Tokens that are matched in normalised text would get the space in front.
  bool prefixIsNormalizer = false;
};

/// `file` is the whole tokenizer.json. A message names the steps that are not
/// known.
std::optional<TextRules> recognizeTextRules(const nlohmann::json &file,
                                            std::string &error);

} // namespace gptc::text

#endif // GPTC_LIB_RUNTIME_TEXT_TEXTRULESJSON_H
