//===- Mistral.cpp - Mistral from Hugging Face checkpoints ----------------===//
//
// Jiang et al., "Mistral 7B" (arXiv:2310.06825): LLaMA with a sliding window in
// every layer. A config.json without the key `sliding_window` means 4096, null
// means none, as for transformers.
//
// Refuses, by name: partial rotation.
//
//===----------------------------------------------------------------------===//

#include "LlamaHf.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::importer;

Graph importer::importMistral(MLIRContext &context,
                              const checkpoint::Checkpoint &checkpoint,
                              Weights &weights, ModelInfo &info) {
  auto json = checkpoint.configReader();
  auto config = readLlamaConfig(json, info, {/*kvHeads=*/8});
  if (!config)
    return config.error();
  if (config->rope.rotary != config->headSize)
    return json.error("partial_rotary_factor",
                      "expected 1: Mistral rotates all channels of a head");
  auto window = readWindow(json, info, /*absent=*/4096);
  if (!window)
    return window.error();
  config->window = *window;
  return importLlamaHf(context, checkpoint, *config, weights, info);
}
