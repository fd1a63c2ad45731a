//===- Phi3.cpp - Phi-3 from Hugging Face checkpoints ---------------------===//
//
// Abdin et al., "Phi-3 Technical Report" (arXiv:2404.14219): LLaMA with one
// stored projection for Q, K and V and one for gate and up, with a sliding
// window, and (Phi-4-mini) with a part of each head rotating.
//
// Refuses, by name: the rotary type longrope of the 128k models.
//
//===----------------------------------------------------------------------===//

#include "LlamaHf.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::importer;

Graph importer::importPhi3(MLIRContext &context,
                           const checkpoint::Checkpoint &checkpoint,
                           Weights &weights, ModelInfo &info) {
  auto json = checkpoint.configReader();
  auto config = readLlamaConfig(json, info);
  if (!config)
    return config.error();
  config->packed = true;
  auto window = readWindow(json, info, /*absent=*/std::nullopt);
  if (!window)
    return window.error();
  config->window = *window;
  return importLlamaHf(context, checkpoint, *config, weights, info);
}
