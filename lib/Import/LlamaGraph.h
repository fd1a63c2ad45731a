//===- LlamaGraph.h - The LLaMA forward pass --------------------*- C++ -*-===//
//
// Touvron et al., "LLaMA" (arXiv:2302.13971), with grouped-query attention
// (arXiv:2305.13245) and Llama 3's rotary scaling. Two readers fill the model:
// Llama.cpp (config.json) and LlamaGguf.cpp (GGUF metadata).
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_IMPORT_LLAMAGRAPH_H
#define GPTC_IMPORT_LLAMAGRAPH_H

#include "Families.h"
#include "gptc/Dialect/Gpt/Gpt.h"

namespace gptc::importer {

struct LlamaConfig {
  int64_t width = 0, heads = 0, kvHeads = 0, headSize = 0, inner = 0;
  double eps = 0;
  Activation activation = Activation::Silu;
  double ropeBase = 0;
  /// half in Hugging Face's row order of Q and K, adjacent in llama.cpp's.
  gpt::RopePairs ropePairs = gpt::RopePairs::Half;
  struct Scaling {
    double factor, low, high;
    int64_t original;
  };
  std::optional<Scaling> ropeScaling;
};

/// Biases may be null.
struct LlamaLayer {
  Weight attnNorm, q, k, v, o, ffnNorm, gate, up, down;
  Weight qBias = nullptr, kBias = nullptr, vBias = nullptr, oBias = nullptr;
  Weight gateBias = nullptr, upBias = nullptr, downBias = nullptr;
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
