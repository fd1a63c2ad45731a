//===- Llama.cpp - LLaMA from Hugging Face checkpoints --------------------===//
//
// LLaMA 1, 2 and 3, and models that were published as such. Biases as
// config.json says.
//
// Refuses, by name: partial rotation.
//
//===----------------------------------------------------------------------===//

#include "Fields.h"
#include "LlamaHf.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::importer;

Graph importer::importLlama(MLIRContext &context,
                            const checkpoint::Checkpoint &checkpoint,
                            Weights &weights, ModelInfo &info) {
  auto json = checkpoint.configReader();
  auto config = readLlamaConfig(json, info);
  if (!config)
    return config.error();
  Fields fields(json);
  config->qkvBias = config->outBias = fields.booleanOr("attention_bias", false);
  config->mlpBias = fields.booleanOr("mlp_bias", false);
  fields.require(config->rope.rotary == config->headSize,
                 "partial_rotary_factor",
                 "expected 1: LLaMA rotates all channels of a head");
  if (fields.failed())
    return fields.error();
  return importLlamaHf(context, checkpoint, *config, weights, info);
}
