//===- GemmaGraph.h - The Gemma forward pass --------------------*- C++ -*-===//
//
// Gemma (arXiv:2403.08295): a LLaMA with GeGLU, heads of a size of their own,
// embeddings times the root of the width, and norms that scale by 1 + weight.
// Gemma 2 (arXiv:2408.00118): norms behind attention and feed-forward as well,
// scores and logits that are capped, a window in every other layer.
//
// Two readers fill the model: Gemma.cpp (config.json) and GemmaGguf.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_IMPORT_GEMMAGRAPH_H
#define GPTC_IMPORT_GEMMAGRAPH_H

#include "Families.h"
#include "Rope.h"

namespace gptc::importer {

struct GemmaConfig : LayerSizes {
  double eps = 0, scoreScale = 1;
  Rope rope;
  Activation activation = Activation::GeluTanh;
  /// Norms are stored less 1.
  bool normsLessOne = true;
  /// Nothing: not capped.
  std::optional<double> scoreCap, logitCap;
};

/// Biases may be null; the last two norms are Gemma 2's and may be.
struct GemmaLayer {
  Weight attnNorm, q, k, v, o, ffnNorm, gate, up, down;
  Weight qBias = nullptr, kBias = nullptr, vBias = nullptr, oBias = nullptr;
  Weight attnPostNorm = nullptr, ffnPostNorm = nullptr;
  std::optional<int64_t> window;
};

/// Tensors, and the prefixes that locations name. The head is never null: the
/// embedding when it is tied.
struct GemmaModel {
  GemmaConfig config;
  Weight tokens, norm, head;
  std::vector<GemmaLayer> layers;
  std::string tokensPrefix, normPrefix, headPrefix;
  /// One per layer.
  std::vector<std::string> attnPrefixes, ffnPrefixes;
};

mlir::OwningOpRef<mlir::ModuleOp> buildGemma(mlir::MLIRContext &context,
                                             const GemmaModel &model,
                                             const Weights &weights,
                                             int64_t vocab);

} // namespace gptc::importer

#endif // GPTC_IMPORT_GEMMAGRAPH_H
