//===- Gpt2Graph.h - The GPT-2 forward pass ---------------------*- C++ -*-===//
//
// Radford et al., "Language Models are Unsupervised Multitask Learners" (2019):
// learned positions, layer norm before each block. Readers fill the model:
// Gpt2.cpp (config.json), Gpt2Gguf.cpp, NanoGpt.cpp (PyTorch checkpoints of
// nanoGPT and minGPT), LlmcGpt2.cpp (llm.c's .bin).
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_IMPORT_GPT2GRAPH_H
#define GPTC_IMPORT_GPT2GRAPH_H

#include "Families.h"

namespace gptc::importer {

struct Gpt2Config {
  int64_t width = 0, heads = 0, inner = 0;
  double eps = 1e-5;
  Activation activation = Activation::GeluTanh;
  /// Scores divided by the root of the head size, and by the layer's number.
  bool scaled = true, scaledByLayer = false;
  /// Linear weights are [in, out] (Conv1D of transformers), else [out, in].
  bool inOut = false;
  /// Linear layers and norms have a bias.
  bool bias = true;
  /// The head is the token embedding.
  bool tied = true;
};

/// Biases may be null.
struct Gpt2Layer {
  Weight norm1, norm1Bias, qkv, qkvBias, proj, projBias;
  Weight norm2, norm2Bias, fc, fcBias, down, downBias;
};

/// Tensors, and the prefixes that locations name. The head is never null.
struct Gpt2Model {
  Gpt2Config config;
  Weight tokens, positions, norm, normBias, head;
  std::vector<Gpt2Layer> layers;
  std::string tokensPrefix, positionsPrefix, normPrefix, headPrefix;
  /// One per layer.
  std::vector<std::string> attnPrefixes, ffnPrefixes;
};

/// Claims the tensors under the names of transformers, which nanoGPT, minGPT
/// and LlmcBin.h use too: `prefix` + "h.3.attn.c_attn.weight". `weights` keeps
/// the first error.
Gpt2Model claimGpt2(const Gpt2Config &config, const ModelInfo &info,
                    const std::string &prefix, Weights &weights);

mlir::OwningOpRef<mlir::ModuleOp> buildGpt2(mlir::MLIRContext &context,
                                            const Gpt2Model &model,
                                            const Weights &weights,
                                            int64_t vocab);

} // namespace gptc::importer

#endif // GPTC_IMPORT_GPT2GRAPH_H
