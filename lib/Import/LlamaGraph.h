//===- LlamaGraph.h - The LLaMA forward pass --------------------*- C++ -*-===//
//
// Touvron et al., "LLaMA" (arXiv:2302.13971), with grouped-query attention
// (arXiv:2305.13245), and what families after it added: biases of Q, K and V
// (Qwen2), a sliding window (Mistral, arXiv:2310.06825), one stored projection
// for Q, K and V and one for gate and up (Phi-3, arXiv:2404.14219), norms of
// the heads of Q and K (Qwen3, arXiv:2505.09388). Two readers fill the model:
// LlamaHf.cpp (config.json) and LlamaGguf.cpp (GGUF metadata).
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_IMPORT_LLAMAGRAPH_H
#define GPTC_IMPORT_LLAMAGRAPH_H

#include "Families.h"
#include "Rope.h"
#include "gptc/Dialect/Gpt/Gpt.h"

namespace gptc::importer {

struct LlamaConfig : LayerSizes {
  double eps = 0;
  Activation activation = Activation::Silu;
  Rope rope;
};

/// Biases and the norms of heads may be null. `qkv` stands for q, k and v,
/// whose rows it holds in this order; `gateUp` for gate and up.
struct LlamaLayer {
  Weight attnNorm = nullptr, ffnNorm = nullptr, o = nullptr, down = nullptr;
  Weight q = nullptr, k = nullptr, v = nullptr, qkv = nullptr;
  Weight qBias = nullptr, kBias = nullptr, vBias = nullptr, qkvBias = nullptr;
  Weight qNorm = nullptr, kNorm = nullptr;
  Weight gate = nullptr, up = nullptr, gateUp = nullptr;
  Weight gateBias = nullptr, upBias = nullptr;
  Weight oBias = nullptr, downBias = nullptr;
  /// Keys that a query sees at most, its own among them; nothing: all before.
  std::optional<int64_t> window;
};

/// Tensors, and the prefixes that locations name. The head is never null: the
/// embedding when it is tied.
struct LlamaModel {
  LlamaConfig config;
  Weight tokens, norm, head;
  std::vector<LlamaLayer> layers;
  std::string tokensPrefix, normPrefix, headPrefix;
  /// One per layer.
  std::vector<std::string> attnPrefixes, ffnPrefixes;
};

mlir::OwningOpRef<mlir::ModuleOp> buildLlama(mlir::MLIRContext &context,
                                             const LlamaModel &model,
                                             const Weights &weights,
                                             int64_t vocab);

} // namespace gptc::importer

#endif // GPTC_IMPORT_LLAMAGRAPH_H
