//===- GgufCommon.h - What all families read from GGUF ----------*- C++ -*-===//
#ifndef GPTC_IMPORT_GGUFCOMMON_H
#define GPTC_IMPORT_GGUFCOMMON_H

#include "Fields.h"
#include "ModelInfo.h"
#include "gptc/Checkpoint/Checkpoint.h"

namespace gptc::importer {

/// A float32 of the metadata as the decimal number that was meant: 1e-5, not
/// 9.999999747378752e-06. It reads back to the same float32.
double asWritten(double stored);

/// tokenizer.ggml.{bos,eos,eot,eom}_token_id.
void readGgufTokens(Fields<checkpoint::gguf::Metadata> &fields,
                    ModelInfo &info);

/// Refuses what would change the logits and is not computed: mixtures of
/// experts and rotary scaling, under the keys of `architecture`.
void refuseGgufVariants(Fields<checkpoint::gguf::Metadata> &fields,
                        std::string_view architecture);

/// The rows of token_embd.weight; the key ARCHITECTURE.vocab_size is optional
/// and must agree.
checkpoint::Expected<int64_t>
readGgufVocab(const checkpoint::Checkpoint &checkpoint,
              std::string_view architecture);

} // namespace gptc::importer

#endif // GPTC_IMPORT_GGUFCOMMON_H
