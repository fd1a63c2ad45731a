//===- GgufCommon.h - What all families read from GGUF ----------*- C++ -*-===//
#ifndef GPTC_IMPORT_GGUFCOMMON_H
#define GPTC_IMPORT_GGUFCOMMON_H

#include "Fields.h"
#include "ModelInfo.h"
#include "gptc/Checkpoint/Checkpoint.h"

namespace gptc::importer {

/// The keys of one architecture.
struct GgufKeys {
  std::string_view architecture;
  std::string operator()(std::string_view key) const {
    return fmt::format("{}.{}", architecture, key);
  }
};

/// A float32 of the metadata as the decimal number that was meant: 1e-5, not
/// 9.999999747378752e-06. It reads back to the same float32.
double asWritten(double stored);

/// tokenizer.ggml.{bos,eos,eot,eom}_token_id.
void readGgufTokens(Fields<checkpoint::gguf::Metadata> &fields,
                    ModelInfo &info);

/// Layers, context, and the sizes of layers whose heads rotate. Refuses keys
/// and values of different size.
void readGgufSizes(Fields<checkpoint::gguf::Metadata> &fields, GgufKeys key,
                   LayerSizes &sizes, ModelInfo &info);

/// Refuses mixtures of experts.
void refuseGgufExperts(Fields<checkpoint::gguf::Metadata> &fields,
                       GgufKeys key);
/// Refuses scaled rotary embeddings.
void refuseGgufRopeScaling(Fields<checkpoint::gguf::Metadata> &fields,
                           GgufKeys key);

/// The rows of token_embd.weight; the key `vocab_size` is optional and must
/// agree.
checkpoint::Expected<int64_t>
readGgufVocab(const checkpoint::Checkpoint &checkpoint, GgufKeys key);

} // namespace gptc::importer

#endif // GPTC_IMPORT_GGUFCOMMON_H
