//===- Gpt2.cpp - GPT-2 from Hugging Face safetensors ---------------------===//
//
// Radford et al., "Language Models are Unsupervised Multitask Learners" (2019),
// in the tensor naming of transformers: names plain or prefixed `transformer.`,
// Conv1D weights [in, out], learned positions, layer norm before each block.
// The head is the token embedding unless config.json unties it.
//
// Refuses cross attention and activations other than the GELUs and SiLU.
// Dropout probabilities of config.json belong to training and are not written.
//
//===----------------------------------------------------------------------===//

#include "Families.h"
#include "Fields.h"
#include "GraphBuilder.h"
#include <cmath>

using namespace mlir;
using namespace gptc;
using namespace gptc::importer;
using checkpoint::Checkpoint;
using checkpoint::Error;

namespace {
struct Config {
  int64_t width, heads, inner;
  double eps;
  Activation activation;
  bool scaled, scaledByLayer, tied;
};

struct Layer {
  Weight norm1, norm1Bias, qkv, qkvBias, proj, projBias;
  Weight norm2, norm2Bias, fc, fcBias, down, downBias;
};

struct Model {
  Weight tokens, positions, norm, normBias, head;
  std::vector<Layer> layers;
};
} // namespace

static checkpoint::Expected<Config> readConfig(const Checkpoint &checkpoint,
                                               ModelInfo &info) {
  auto json = checkpoint.configReader();
  Fields fields(json);
  Config config;
  info.layers = fields.size("n_layer");
  info.vocab = fields.size("vocab_size");
  info.context = fields.size("n_positions");
  config.width = fields.size("n_embd");
  config.heads = fields.size("n_head");
  fields.requireMultiple("n_embd", config.width, "n_head", config.heads);
  config.inner = fields.sizeOr("n_inner", 4 * config.width);
  config.eps = fields.positiveOr("layer_norm_epsilon", 1e-5);
  std::string name = fields.stringOr("activation_function", "gelu_new");
  auto activation = activationNamed(name);
  fields.require(activation.has_value(), "activation_function",
                 fmt::format("expected one of {}, got {}", activationNames(),
                             checkpoint::quote(name)));
  config.activation = activation.value_or(Activation::GeluTanh);
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

static Model claimWeights(const Config &config, const ModelInfo &info,
                          const std::string &prefix, Weights &weights) {
  int64_t c = config.width, f = config.inner;
  Model model;
  model.tokens = weights.claim(prefix + "wte.weight", {info.vocab, c});
  model.positions = weights.claim(prefix + "wpe.weight", {info.context, c});
  for (int64_t i = 0; i < info.layers && !weights.failed(); ++i) {
    std::string h = fmt::format("{}h.{}.", prefix, i);
    Layer layer;
    layer.norm1 = weights.claim(h + "ln_1.weight", {c});
    layer.norm1Bias = weights.claim(h + "ln_1.bias", {c});
    layer.qkv = weights.claim(h + "attn.c_attn.weight", {c, 3 * c});
    layer.qkvBias = weights.claim(h + "attn.c_attn.bias", {3 * c});
    layer.proj = weights.claim(h + "attn.c_proj.weight", {c, c});
    layer.projBias = weights.claim(h + "attn.c_proj.bias", {c});
    layer.norm2 = weights.claim(h + "ln_2.weight", {c});
    layer.norm2Bias = weights.claim(h + "ln_2.bias", {c});
    layer.fc = weights.claim(h + "mlp.c_fc.weight", {c, f});
    layer.fcBias = weights.claim(h + "mlp.c_fc.bias", {f});
    layer.down = weights.claim(h + "mlp.c_proj.weight", {f, c});
    layer.downBias = weights.claim(h + "mlp.c_proj.bias", {c});
    model.layers.push_back(layer);
  }
  model.norm = weights.claim(prefix + "ln_f.weight", {c});
  model.normBias = weights.claim(prefix + "ln_f.bias", {c});
  model.head = config.tied ? model.tokens
                           : weights.claim("lm_head.weight", {info.vocab, c});
  return model;
}

static Value buildAttention(GraphBuilder &graph, const Config &config,
                            const Layer &layer, int64_t index, Value x) {
  Value gamma = graph.load("ln1_g", layer.norm1);
  Value beta = graph.load("ln1_b", layer.norm1Bias);
  Value wqkv = graph.load("wqkv", layer.qkv);
  Value bqkv = graph.load("bqkv", layer.qkvBias);
  Value wo = graph.load("wo", layer.proj);
  Value bo = graph.load("bo", layer.projBias);
  Value n = graph.layerNorm("ln1", x, gamma, beta, config.eps);
  Value qkv = graph.linear("qkv", n, wqkv, bqkv, /*inOut=*/true);
  auto parts = graph.split("part", qkv, 3);
  Value q = graph.splitHeads("q", parts[0], config.heads);
  Value k = graph.splitHeads("k", parts[1], config.heads);
  Value v = graph.splitHeads("v", parts[2], config.heads);
  double headSize = static_cast<double>(config.width / config.heads);
  double scale = config.scaled ? 1 / std::sqrt(headSize) : 1;
  if (config.scaledByLayer)
    scale /= static_cast<double>(index + 1);
  Value heads = graph.attention(q, k, v, scale, /*groups=*/1);
  Value merged = graph.mergeHeads("merged", heads);
  Value out = graph.linear("attn", merged, wo, bo, /*inOut=*/true);
  return graph.add("mid", x, out);
}

static Value buildFeedForward(GraphBuilder &graph, const Config &config,
                              const Layer &layer, Value x) {
  Value gamma = graph.load("ln2_g", layer.norm2);
  Value beta = graph.load("ln2_b", layer.norm2Bias);
  Value wfc = graph.load("wfc", layer.fc);
  Value bfc = graph.load("bfc", layer.fcBias);
  Value wdown = graph.load("wdown", layer.down);
  Value bdown = graph.load("bdown", layer.downBias);
  Value n = graph.layerNorm("ln2", x, gamma, beta, config.eps);
  Value fc = graph.linear("fc", n, wfc, bfc, /*inOut=*/true);
  Value act = graph.activation("act", config.activation, fc);
  Value down = graph.linear("down", act, wdown, bdown, /*inOut=*/true);
  return graph.add("out", x, down);
}

Graph importer::importGpt2(MLIRContext &context, const Checkpoint &checkpoint,
                           Weights &weights, ModelInfo &info) {
  auto config = readConfig(checkpoint, info);
  if (!config)
    return config.error();
  std::string prefix =
      weights.stored("transformer.wte.weight") ? "transformer." : "";
  // A config.json that does not mention tying may lie beside an untied head.
  if (!checkpoint.config().find("tie_word_embeddings") &&
      weights.stored("lm_head.weight"))
    config->tied = false;
  Model model = claimWeights(*config, info, prefix, weights);
  if (weights.failed())
    return weights.error();

  GraphBuilder graph(context, weights.claimed(), info.vocab);
  graph.enter(prefix + "wte");
  Value wte = graph.load("wte", model.tokens);
  Value tok = graph.embedding("tok", wte, graph.tokens());
  graph.enter(prefix + "wpe");
  Value wpe = graph.load("wpe", model.positions);
  Value ids = graph.positions("positions", graph.tokens());
  Value pos = graph.embedding("pos", wpe, ids);
  Value x = graph.add("x", tok, pos);
  for (size_t i = 0; i < model.layers.size(); ++i) {
    std::string h = fmt::format("{}h.{}.", prefix, i);
    int64_t index = static_cast<int64_t>(i);
    graph.enter(h + "attn", index);
    x = buildAttention(graph, *config, model.layers[i], index, x);
    graph.enter(h + "mlp", index);
    x = buildFeedForward(graph, *config, model.layers[i], x);
  }
  graph.enter(prefix + "ln_f");
  Value gamma = graph.load("lnf_g", model.norm);
  Value beta = graph.load("lnf_b", model.normBias);
  Value n = graph.layerNorm("lnf", x, gamma, beta, config->eps);
  graph.enter(config->tied ? prefix + "wte" : "lm_head");
  Value head = graph.load("head", model.head);
  return graph.finish(graph.linear("logits", n, head, /*bias=*/{}));
}
