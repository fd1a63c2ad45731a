//===- TokenizerSource.h - A checkpoint's tokenizer -------------*- C++ -*-===//
//
// Looks, in this order, at the metadata of a GGUF file; tokenizer.json (with
// tokenizer_config.json and chat_template.jinja, which counts more); vocab.json
// with merges.txt; encoder.json with vocab.bpe. Files are looked for in the
// checkpoint folder, or in the folder of a .safetensors file.
//
// Refuses what TokenizerImport.h refuses, and files above 256 MiB. A checkpoint
// without a tokenizer, or with one that is refused, still imports.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_IMPORT_TOKENIZERSOURCE_H
#define GPTC_IMPORT_TOKENIZERSOURCE_H

#include "gptc/Checkpoint/Checkpoint.h"
#include "gptc/Runtime/Text/TokenizerData.h"
#include <optional>
#include <string>

namespace gptc {

/// The file's own name that a tokenizer would be read from ("tokenizer.json",
/// "model.gguf"); empty when there is none.
std::string tokenizerFile(const checkpoint::Checkpoint &checkpoint);

/// Nothing, with `why` saying what was looked for, when there is no tokenizer.
/// An Error names the file and the rule that its tokenizer breaks.
checkpoint::Expected<std::optional<text::TokenizerData>>
loadTokenizer(const checkpoint::Checkpoint &checkpoint, std::string &why);

} // namespace gptc

#endif // GPTC_IMPORT_TOKENIZERSOURCE_H
