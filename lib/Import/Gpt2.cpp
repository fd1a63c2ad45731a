//===- Gpt2.cpp - GPT-2 from Hugging Face checkpoints ---------------------===//
//
// The tensor naming of transformers: names plain or prefixed `transformer.`,
// Conv1D weights [in, out]. The head is the token embedding unless config.json
// unties it (tie_word_embeddings is true where it is not mentioned) or the file
// has another one.
//
// Refuses cross attention and activations other than the GELUs and SiLU.
// Dropout probabilities of config.json belong to training and are not written.
//
//===----------------------------------------------------------------------===//

#include "Fields.h"
#include "Gpt2Graph.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::importer;
using checkpoint::Checkpoint;
using checkpoint::Error;

static checkpoint::Expected<Gpt2Config> readConfig(const Checkpoint &checkpoint,
                                                   ModelInfo &info) {
  auto json = checkpoint.configReader();
  Fields fields(json);
  Gpt2Config config;
  config.inOut = true;
  info.layers = fields.size("n_layer");
  info.vocab = fields.size("vocab_size");
  info.context = fields.size("n_positions");
  config.width = fields.size("n_embd");
  config.heads = fields.size("n_head");
  fields.requireMultiple("n_embd", config.width, "n_head", config.heads);
  config.inner = fields.sizeOr("n_inner", 4 * config.width);
  config.eps = fields.positiveOr("layer_norm_epsilon", 1e-5);
  config.activation = readActivation(fields, "activation_function", "gelu_new");
  config.scaled = fields.booleanOr("scale_attn_weights", true);
  config.scaledByLayer =
      fields.booleanOr("scale_attn_by_inverse_layer_idx", false);
  fields.require(!fields.booleanOr("add_cross_attention", false),
                 "add_cross_attention",
                 "expected false: cross attention is not supported");
  config.tied = fields.booleanOr("tie_word_embeddings", true);
  if (fields.failed())
    return fields.error();
  if (auto read = readSpecialTokens(json, info); !read)
    return read.error();
  if (auto read = refuseQuantization(json); !read)
    return read.error();
  return config;
}

Graph importer::importGpt2(MLIRContext &context, const Checkpoint &checkpoint,
                           Weights &weights, ModelInfo &info) {
  auto config = readConfig(checkpoint, info);
  if (!config)
    return config.error();
  std::string prefix =
      weights.stored("transformer.wte.weight") ? "transformer." : "";
  if (config->tied)
    config->tied = !hasOtherHead(checkpoint, "lm_head.weight",
                                 prefix + "wte.weight", info);
  Gpt2Model model = claimGpt2(*config, info, prefix, weights);
  if (weights.failed())
    return weights.error();
  return buildGpt2(context, model, weights, info.vocab);
}
