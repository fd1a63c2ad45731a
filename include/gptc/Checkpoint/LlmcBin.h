//===- LlmcBin.h - llm.c's model files --------------------------*- C++ -*-===//
//
// A header of 256 little-endian int32 (20240326, version, context, vocabulary,
// layers, heads, channels, padded vocabulary), then GPT-2's parameters in one
// order without holes, the layers of each parameter together: version 3 in f32,
// version 5 in bf16. Linear weights are [out, in].
//
// Tensors are named as transformers names them, layer by layer. `wte.weight`
// has the rows of the real vocabulary: those of the padding, which lie behind
// them, are no tokens. Refuses other versions, sizes that are not positive or
// do not fit together, and files that are not exactly as long as their header
// says. Source: write_state and its readers in llm.c's train_gpt2.py and
// train_gpt2.cu.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_CHECKPOINT_LLMCBIN_H
#define GPTC_CHECKPOINT_LLMCBIN_H

#include "gptc/Checkpoint/Json.h"
#include "gptc/Checkpoint/MappedFile.h"
#include "gptc/Checkpoint/Tensor.h"
#include <vector>

namespace gptc::checkpoint {

struct LlmcContents {
  /// In the order of the file, a parameter's layers one after the other. They
  /// point into its mapping.
  std::vector<TensorInfo> tensors;
  /// The header's fields under llm.c's names: max_seq_len, vocab_size,
  /// num_layers, num_heads, channels, padded_vocab_size.
  json::Value config;
};

/// Whether the file begins with llm.c's magic number of GPT-2.
bool looksLikeLlmcBin(const MappedFile &file);

Expected<LlmcContents> readLlmcBin(const MappedFile &file);

} // namespace gptc::checkpoint

#endif // GPTC_CHECKPOINT_LLMCBIN_H
