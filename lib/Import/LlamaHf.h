//===- LlamaHf.h - LLaMA and its relatives from config.json -----*- C++ -*-===//
//
// What Llama.cpp, Mistral.cpp, Qwen.cpp and Phi3.cpp share. Each reads its
// config.json with readLlamaConfig, says what differs in the fields of
// LlamaHfConfig, and ends in importLlamaHf.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_IMPORT_LLAMAHF_H
#define GPTC_IMPORT_LLAMAHF_H

#include "LlamaGraph.h"

namespace gptc::importer {

struct LlamaHfConfig : LlamaConfig {
  bool qkvBias = false, outBias = false, mlpBias = false, tied = false;
  /// qkv_proj and gate_up_proj instead of five projections.
  bool packed = false;
  /// q_norm and k_norm.
  bool headNorms = false;
  /// A sliding window, which the layers have that `sliding` says, or where that
  /// is empty those from `slidingFrom` on.
  std::optional<int64_t> window;
  std::vector<bool> sliding;
  int64_t slidingFrom = 0;
};

/// What a family means by a key that is absent; 0: its general rule.
struct LlamaDefaults {
  int64_t kvHeads = 0, headSize = 0;
};

/// The keys that all of them have, biases aside.
checkpoint::Expected<LlamaHfConfig>
readLlamaConfig(const checkpoint::json::Reader &json, ModelInfo &info,
                const LlamaDefaults &absent = {});

/// The key `sliding_window`: a size, or null for none. Nothing too where it
/// reaches as far back as the context.
checkpoint::Expected<std::optional<int64_t>>
readWindow(const checkpoint::json::Reader &json, const ModelInfo &info,
           std::optional<int64_t> absent);

/// Claims the weights, names with or without the prefix `model.`, and builds.
Graph importLlamaHf(mlir::MLIRContext &context,
                    const checkpoint::Checkpoint &checkpoint,
                    const LlamaHfConfig &config, Weights &weights,
                    ModelInfo &info);

} // namespace gptc::importer

#endif // GPTC_IMPORT_LLAMAHF_H
