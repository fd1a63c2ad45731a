//===- Gpt2Gguf.cpp - GPT-2 from a GGUF file ------------------------------===//
//
// Hyperparameters are the keys `gpt2.*` of the metadata. Matrices are stored
// [out, in]; one projection holds q, k and v. The activation is the tanh
// approximation of GELU, which the format does not state. The head is
// `output.weight`, or the token embedding where that is absent.
//
// Refuses, by name: rotary scaling, mixtures of experts, grouped heads.
// Source: the GGUF specification's list of standard keys and tensor names.
//
//===----------------------------------------------------------------------===//

#include "GgufCommon.h"
#include "Gpt2Graph.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::importer;
using checkpoint::Checkpoint;
using checkpoint::Expected;
using checkpoint::gguf::Metadata;

static Expected<Gpt2Config> readConfig(const Metadata &metadata,
                                       ModelInfo &info) {
  Fields fields(metadata);
  Gpt2Config config;
  info.layers = fields.size("gpt2.block_count");
  info.context = fields.size("gpt2.context_length");
  config.width = fields.size("gpt2.embedding_length");
  config.inner = fields.size("gpt2.feed_forward_length");
  config.heads = fields.size("gpt2.attention.head_count");
  fields.requireMultiple("gpt2.embedding_length", config.width,
                         "gpt2.attention.head_count", config.heads);
  int64_t kvHeads = fields.sizeOr("gpt2.attention.head_count_kv", config.heads);
  fields.require(kvHeads == config.heads, "gpt2.attention.head_count_kv",
                 fmt::format("expected the {} of 'gpt2.attention.head_count', "
                             "got {}",
                             config.heads, kvHeads));
  config.eps = asWritten(fields.positive("gpt2.attention.layer_norm_epsilon"));
  refuseGgufExperts(fields, {"gpt2"});
  refuseGgufRopeScaling(fields, {"gpt2"});
  readGgufTokens(fields, info);
  if (fields.failed())
    return fields.error();
  return config;
}

static Gpt2Layer claimLayer(const Gpt2Config &config, const std::string &at,
                            Weights &weights) {
  int64_t c = config.width, f = config.inner;
  auto weight = [&](const char *name, std::vector<int64_t> shape) {
    return weights.claim(at + name + ".weight", shape);
  };
  auto bias = [&](const char *name, int64_t size) {
    return weights.claim(at + name + ".bias", {size});
  };
  Gpt2Layer layer;
  layer.norm1 = weight("attn_norm", {c});
  layer.norm1Bias = bias("attn_norm", c);
  layer.qkv = weight("attn_qkv", {3 * c, c});
  layer.qkvBias = bias("attn_qkv", 3 * c);
  layer.proj = weight("attn_output", {c, c});
  layer.projBias = bias("attn_output", c);
  layer.norm2 = weight("ffn_norm", {c});
  layer.norm2Bias = bias("ffn_norm", c);
  layer.fc = weight("ffn_up", {f, c});
  layer.fcBias = bias("ffn_up", f);
  layer.down = weight("ffn_down", {c, f});
  layer.downBias = bias("ffn_down", c);
  return layer;
}

Graph importer::importGpt2Gguf(MLIRContext &context,
                               const Checkpoint &checkpoint, Weights &weights,
                               ModelInfo &info) {
  auto config = readConfig(checkpoint.metadata(), info);
  if (!config)
    return config.error();
  auto vocab = readGgufVocab(checkpoint, {"gpt2"});
  if (!vocab)
    return vocab.error();
  info.vocab = *vocab;
  int64_t c = config->width;
  config->tied = !weights.stored("output.weight");
  Gpt2Model model;
  model.config = *config;
  model.tokensPrefix = "token_embd";
  model.positionsPrefix = "position_embd";
  model.normPrefix = "output_norm";
  model.headPrefix = config->tied ? model.tokensPrefix : "output";
  model.tokens = weights.claim("token_embd.weight", {*vocab, c});
  model.positions = weights.claim("position_embd.weight", {info.context, c});
  for (int64_t i = 0; i < info.layers && !weights.hopeless(); ++i) {
    std::string at = fmt::format("blk.{}.", i);
    model.layers.push_back(claimLayer(*config, at, weights));
    model.attnPrefixes.push_back(at + "attn");
    model.ffnPrefixes.push_back(at + "ffn");
  }
  model.norm = weights.claim("output_norm.weight", {c});
  model.normBias = weights.claim("output_norm.bias", {c});
  model.head = weights.claim(model.headPrefix + ".weight", {*vocab, c});
  if (weights.failed())
    return weights.error();
  return buildGpt2(context, model, weights, *vocab);
}
