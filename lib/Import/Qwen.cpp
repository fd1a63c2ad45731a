//===- Qwen.cpp - Qwen2 and Qwen3 from Hugging Face checkpoints -----------===//
//
// Yang et al., "Qwen2" (arXiv:2407.10671): LLaMA with biases of Q, K and V.
// "Qwen3" (arXiv:2505.09388): without them, and with an RMS norm over each head
// of Q and K before they rotate. A window, if config.json uses one, stands in
// the layers that `layer_types` names, or in those from `max_window_layers` on.
//
// Refuses, by name: other kinds of layers, partial rotation.
//
//===----------------------------------------------------------------------===//

#include "Fields.h"
#include "LlamaHf.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::importer;

static Graph importQwen(MLIRContext &context,
                        const checkpoint::Checkpoint &checkpoint,
                        Weights &weights, ModelInfo &info,
                        const LlamaDefaults &absent, bool isQwen3) {
  auto json = checkpoint.configReader();
  auto config = readLlamaConfig(json, info, absent);
  if (!config)
    return config.error();
  Fields fields(json);
  config->headNorms = isQwen3;
  config->qkvBias = !isQwen3;
  if (isQwen3)
    config->qkvBias = config->outBias =
        fields.booleanOr("attention_bias", false);
  fields.require(config->rope.rotary == config->headSize,
                 "partial_rotary_factor",
                 "expected 1: Qwen rotates all channels of a head");
  bool used = fields.booleanOr("use_sliding_window", false);
  config->slidingFrom = fields.integerOr("max_window_layers", 28);
  if (fields.failed())
    return fields.error();
  auto window = readWindow(json, info, /*absent=*/4096);
  if (!window)
    return window.error();
  auto sliding = readSlidingLayers(json, info.layers);
  if (!sliding)
    return sliding.error();
  if (!used && llvm::is_contained(*sliding, true))
    return json.error("layer_types", "expected no sliding_attention beside "
                                     "'use_sliding_window' false");
  config->sliding = *sliding;
  if (used)
    config->window = *window;
  return importLlamaHf(context, checkpoint, *config, weights, info);
}

Graph importer::importQwen2(MLIRContext &context,
                            const checkpoint::Checkpoint &checkpoint,
                            Weights &weights, ModelInfo &info) {
  return importQwen(context, checkpoint, weights, info, {/*kvHeads=*/32},
                    /*isQwen3=*/false);
}

Graph importer::importQwen3(MLIRContext &context,
                            const checkpoint::Checkpoint &checkpoint,
                            Weights &weights, ModelInfo &info) {
  return importQwen(context, checkpoint, weights, info,
                    {/*kvHeads=*/32, /*headSize=*/128}, /*isQwen3=*/true);
}
