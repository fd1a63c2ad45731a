//===- GptNeoX.cpp - GPT-NeoX and Pythia from Hugging Face checkpoints ----===//
//
// Black et al., "GPT-NeoX-20B" (arXiv:2204.06745); Pythia (arXiv:2304.01373).
// Layer norms, attention and feed-forward side by side on one residual stream
// (or one after the other), rotary embeddings on the first part of each head,
// and one projection that holds q, k and v of each head one after another:
// rows [H, 3, D]. The head is `embed_out.weight` (newer: `lm_head.weight`),
// or the token embedding where config.json ties it and the file has no other
// one. Names may lack the prefix `gpt_neox.`.
//
// Refuses, by name: rotary types other than default, linear and llama3,
// quantised checkpoints.
// Dropout probabilities belong to training and are not written.
//
//===----------------------------------------------------------------------===//

#include "Families.h"
#include "Fields.h"
#include "GraphBuilder.h"
#include "Rope.h"
#include <cmath>

using namespace mlir;
using namespace gptc;
using namespace gptc::importer;
using checkpoint::Checkpoint;
using checkpoint::Expected;
using checkpoint::json::Reader;

namespace {
struct Config {
  int64_t width, heads, headSize, inner;
  double eps;
  Rope rope;
  Activation activation;
  bool parallel, attentionBias, tied;
};

struct Layer {
  Weight attnNorm, attnNormBias, qkv, qkvBias, dense, denseBias;
  Weight ffnNorm, ffnNormBias, up, upBias, down, downBias;
};

struct Model {
  Weight tokens, norm, normBias, head;
  std::vector<Layer> layers;
};
} // namespace

static Expected<Config> readConfig(const Reader &json, ModelInfo &info) {
  Fields fields(json);
  Config config;
  info.layers = fields.size("num_hidden_layers");
  info.vocab = fields.size("vocab_size");
  info.context = fields.size("max_position_embeddings");
  config.width = fields.size("hidden_size");
  config.heads = fields.size("num_attention_heads");
  fields.requireMultiple("hidden_size", config.width, "num_attention_heads",
                         config.heads);
  config.headSize = config.width / config.heads;
  fields.requireRotaryHeadSize("hidden_size", config.headSize);
  config.inner = fields.size("intermediate_size");
  config.eps = fields.positiveOr("layer_norm_eps", 1e-5);
  config.activation = readActivation(fields, "hidden_act", "gelu");
  config.parallel = fields.booleanOr("use_parallel_residual", true);
  config.attentionBias = fields.booleanOr("attention_bias", true);
  config.tied = fields.booleanOr("tie_word_embeddings", false);
  if (fields.failed())
    return fields.error();
  // Newer files have both in rope_parameters, under their usual names.
  auto rope = readRope(json, config.headSize,
                       {"rotary_emb_base", "rotary_pct", 10000, 0.25});
  if (!rope)
    return rope.error();
  config.rope = *rope;
  if (auto read = readSpecialTokens(json, info); !read)
    return read.error();
  if (auto read = refuseQuantization(json); !read)
    return read.error();
  return config;
}

static Layer claimLayer(const Config &config, const std::string &at,
                        Weights &weights) {
  int64_t c = config.width, f = config.inner;
  auto bias = [&](const char *name, int64_t size) {
    return config.attentionBias ? weights.claim(at + name, {size}) : nullptr;
  };
  Layer layer;
  layer.attnNorm = weights.claim(at + "input_layernorm.weight", {c});
  layer.attnNormBias = weights.claim(at + "input_layernorm.bias", {c});
  layer.qkv =
      weights.claim(at + "attention.query_key_value.weight", {3 * c, c});
  layer.qkvBias = bias("attention.query_key_value.bias", 3 * c);
  layer.dense = weights.claim(at + "attention.dense.weight", {c, c});
  layer.denseBias = bias("attention.dense.bias", c);
  layer.ffnNorm = weights.claim(at + "post_attention_layernorm.weight", {c});
  layer.ffnNormBias = weights.claim(at + "post_attention_layernorm.bias", {c});
  layer.up = weights.claim(at + "mlp.dense_h_to_4h.weight", {f, c});
  layer.upBias = weights.claim(at + "mlp.dense_h_to_4h.bias", {f});
  layer.down = weights.claim(at + "mlp.dense_4h_to_h.weight", {c, f});
  layer.downBias = weights.claim(at + "mlp.dense_4h_to_h.bias", {c});
  return layer;
}

static Value buildAttention(GraphBuilder &graph, const Config &config,
                            const Layer &layer, gpt::RopeAttr rope,
                            Value positions, Value x) {
  Value gamma = graph.load("ln1_g", layer.attnNorm);
  Value beta = graph.load("ln1_b", layer.attnNormBias);
  Value wqkv = graph.load("wqkv", layer.qkv);
  Value bqkv = graph.loadIfAny("bqkv", layer.qkvBias);
  Value wo = graph.load("wo", layer.dense);
  Value bo = graph.loadIfAny("bo", layer.denseBias);
  Value n = graph.layerNorm("ln1", x, gamma, beta, config.eps);
  Value qkv = graph.linear("qkv", n, wqkv, bqkv);
  Value packed = graph.splitHeads("packed", qkv, config.heads);
  auto parts = graph.split("part", packed, 3);
  Value q = graph.rope("q", parts[0], positions, rope);
  Value k = graph.rope("k", parts[1], positions, rope);
  double scale = 1 / std::sqrt(static_cast<double>(config.headSize));
  Value heads = graph.attention(q, k, parts[2], scale, /*groups=*/1);
  Value merged = graph.mergeHeads("merged", heads);
  return graph.linear("attn", merged, wo, bo);
}

static Value buildFeedForward(GraphBuilder &graph, const Config &config,
                              const Layer &layer, Value x) {
  Value gamma = graph.load("ln2_g", layer.ffnNorm);
  Value beta = graph.load("ln2_b", layer.ffnNormBias);
  Value wup = graph.load("wup", layer.up);
  Value bup = graph.load("bup", layer.upBias);
  Value wdown = graph.load("wdown", layer.down);
  Value bdown = graph.load("bdown", layer.downBias);
  Value n = graph.layerNorm("ln2", x, gamma, beta, config.eps);
  Value up = graph.linear("up", n, wup, bup);
  Value act = graph.activation("act", config.activation, up);
  return graph.linear("down", act, wdown, bdown);
}

static OwningOpRef<ModuleOp> build(MLIRContext &context, const Config &config,
                                   const Model &model,
                                   const std::string &prefix,
                                   const std::string &headPrefix,
                                   const Weights &weights, int64_t vocab) {
  GraphBuilder graph(context, weights.claimed(), vocab);
  gpt::RopeAttr rope = config.rope.attribute(context);
  graph.enter(prefix + "embed_in");
  Value table = graph.load("embed", model.tokens);
  Value x = graph.embedding("x", table, graph.tokens());
  Value positions = graph.positions("pos", graph.tokens());
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const Layer &layer = model.layers[i];
    std::string at = fmt::format("{}layers.{}.", prefix, i);
    int64_t index = static_cast<int64_t>(i);
    graph.enter(at + "attention", index);
    Value attn = buildAttention(graph, config, layer, rope, positions, x);
    if (!config.parallel)
      x = graph.add("mid", attn, x);
    graph.enter(at + "mlp", index);
    Value down = buildFeedForward(graph, config, layer, x);
    if (config.parallel)
      down = graph.add("both", down, attn);
    x = graph.add("out", down, x);
  }
  graph.enter(prefix + "final_layer_norm");
  Value gamma = graph.load("lnf_g", model.norm);
  Value beta = graph.load("lnf_b", model.normBias);
  Value n = graph.layerNorm("lnf", x, gamma, beta, config.eps);
  graph.enter(headPrefix);
  Value head = graph.load("head", model.head);
  return graph.finish(graph.linear("logits", n, head, /*bias=*/{}));
}

Graph importer::importGptNeoX(MLIRContext &context,
                              const Checkpoint &checkpoint, Weights &weights,
                              ModelInfo &info) {
  auto config = readConfig(checkpoint.configReader(), info);
  if (!config)
    return config.error();
  std::string prefix = weights.stored("embed_in.weight") ? "" : "gpt_neox.";
  std::string headPrefix =
      weights.stored("lm_head.weight") ? "lm_head" : "embed_out";
  if (config->tied && !hasOtherHead(checkpoint, headPrefix + ".weight",
                                    prefix + "embed_in.weight", info))
    headPrefix = prefix + "embed_in";
  int64_t c = config->width;
  Model model;
  model.tokens = weights.claim(prefix + "embed_in.weight", {info.vocab, c});
  for (int64_t i = 0; i < info.layers && !weights.hopeless(); ++i)
    model.layers.push_back(
        claimLayer(*config, fmt::format("{}layers.{}.", prefix, i), weights));
  model.norm = weights.claim(prefix + "final_layer_norm.weight", {c});
  model.normBias = weights.claim(prefix + "final_layer_norm.bias", {c});
  model.head = weights.claim(headPrefix + ".weight", {info.vocab, c});
  if (weights.failed())
    return weights.error();
  return build(context, *config, model, prefix, headPrefix, weights,
               info.vocab);
}
