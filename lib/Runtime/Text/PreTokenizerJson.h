//===- PreTokenizerJson.h - Recognising pre-tokenizers by structure -------===//
//
// Hugging Face's tokenizer.json describes the pre-tokenizer as a tree of
// steps; this library runs three of those trees and knows them by shape.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_LIB_RUNTIME_TEXT_PRETOKENIZERJSON_H
#define GPTC_LIB_RUNTIME_TEXT_PRETOKENIZERJSON_H

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace gptc::text {

/// The canonical name for the tree, or a message naming its steps.
std::optional<std::string>
recognizePreTokenizer(const nlohmann::json &preTokenizer, std::string &error);

} // namespace gptc::text

#endif // GPTC_LIB_RUNTIME_TEXT_PRETOKENIZERJSON_H
