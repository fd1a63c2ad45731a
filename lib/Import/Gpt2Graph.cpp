//===- Gpt2Graph.cpp - The GPT-2 forward pass -----------------------------===//

#include "Gpt2Graph.h"
#include "GraphBuilder.h"
#include <cmath>
#include <fmt/format.h>

using namespace mlir;
using namespace gptc;
using namespace gptc::importer;

namespace {
/// Claims under one prefix; knows which way round linear weights lie.
class Claims {
public:
  Claims(const Gpt2Config &config, Weights &weights, std::string prefix)
      : config(config), weights(weights), prefix(std::move(prefix)) {}

  Weight vector(const char *name, int64_t size) {
    return weights.claim(prefix + name, {size});
  }
  Weight bias(const char *name, int64_t size) {
    return config.bias ? vector(name, size) : nullptr;
  }
  Weight linear(const char *name, int64_t in, int64_t out) {
    return config.inOut ? weights.claim(prefix + name, {in, out})
                        : weights.claim(prefix + name, {out, in});
  }

private:
  const Gpt2Config &config;
  Weights &weights;
  std::string prefix;
};
} // namespace

static Gpt2Layer claimLayer(const Gpt2Config &config, Claims claims) {
  int64_t c = config.width, f = config.inner;
  Gpt2Layer layer;
  layer.norm1 = claims.vector("ln_1.weight", c);
  layer.norm1Bias = claims.bias("ln_1.bias", c);
  layer.qkv = claims.linear("attn.c_attn.weight", c, 3 * c);
  layer.qkvBias = claims.bias("attn.c_attn.bias", 3 * c);
  layer.proj = claims.linear("attn.c_proj.weight", c, c);
  layer.projBias = claims.bias("attn.c_proj.bias", c);
  layer.norm2 = claims.vector("ln_2.weight", c);
  layer.norm2Bias = claims.bias("ln_2.bias", c);
  layer.fc = claims.linear("mlp.c_fc.weight", c, f);
  layer.fcBias = claims.bias("mlp.c_fc.bias", f);
  layer.down = claims.linear("mlp.c_proj.weight", f, c);
  layer.downBias = claims.bias("mlp.c_proj.bias", c);
  return layer;
}

Gpt2Model importer::claimGpt2(const Gpt2Config &config, const ModelInfo &info,
                              const std::string &prefix, Weights &weights) {
  int64_t c = config.width;
  Gpt2Model model;
  model.config = config;
  model.tokensPrefix = prefix + "wte";
  model.positionsPrefix = prefix + "wpe";
  model.normPrefix = prefix + "ln_f";
  model.headPrefix = config.tied ? model.tokensPrefix : "lm_head";
  model.tokens = weights.claim(prefix + "wte.weight", {info.vocab, c});
  model.positions = weights.claim(prefix + "wpe.weight", {info.context, c});
  for (int64_t i = 0; i < info.layers && !weights.hopeless(); ++i) {
    std::string at = fmt::format("{}h.{}.", prefix, i);
    model.layers.push_back(claimLayer(config, {config, weights, at}));
    model.attnPrefixes.push_back(at + "attn");
    model.ffnPrefixes.push_back(at + "mlp");
  }
  Claims claims(config, weights, prefix);
  model.norm = claims.vector("ln_f.weight", c);
  model.normBias = claims.bias("ln_f.bias", c);
  model.head = config.tied ? model.tokens
                           : weights.claim("lm_head.weight", {info.vocab, c});
  return model;
}

static Value buildAttention(GraphBuilder &graph, const Gpt2Config &config,
                            const Gpt2Layer &layer, int64_t index, Value x) {
  Value gamma = graph.load("ln1_g", layer.norm1);
  Value beta = graph.loadIfAny("ln1_b", layer.norm1Bias);
  Value wqkv = graph.load("wqkv", layer.qkv);
  Value bqkv = graph.loadIfAny("bqkv", layer.qkvBias);
  Value wo = graph.load("wo", layer.proj);
  Value bo = graph.loadIfAny("bo", layer.projBias);
  Value n = graph.layerNorm("ln1", x, gamma, beta, config.eps);
  Value qkv = graph.linear("qkv", n, wqkv, bqkv, config.inOut);
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
  Value out = graph.linear("attn", merged, wo, bo, config.inOut);
  return graph.add("mid", x, out);
}

static Value buildFeedForward(GraphBuilder &graph, const Gpt2Config &config,
                              const Gpt2Layer &layer, Value x) {
  Value gamma = graph.load("ln2_g", layer.norm2);
  Value beta = graph.loadIfAny("ln2_b", layer.norm2Bias);
  Value wfc = graph.load("wfc", layer.fc);
  Value bfc = graph.loadIfAny("bfc", layer.fcBias);
  Value wdown = graph.load("wdown", layer.down);
  Value bdown = graph.loadIfAny("bdown", layer.downBias);
  Value n = graph.layerNorm("ln2", x, gamma, beta, config.eps);
  Value fc = graph.linear("fc", n, wfc, bfc, config.inOut);
  Value act = graph.activation("act", config.activation, fc);
  Value down = graph.linear("down", act, wdown, bdown, config.inOut);
  return graph.add("out", x, down);
}

OwningOpRef<ModuleOp> importer::buildGpt2(MLIRContext &context,
                                          const Gpt2Model &model,
                                          const Weights &weights,
                                          int64_t vocab) {
  const Gpt2Config &config = model.config;
  GraphBuilder graph(context, weights.claimed(), vocab);
  graph.enter(model.tokensPrefix);
  Value wte = graph.load("wte", model.tokens);
  Value tok = graph.embedding("tok", wte, graph.tokens());
  graph.enter(model.positionsPrefix);
  Value wpe = graph.load("wpe", model.positions);
  Value ids = graph.positions("positions", graph.tokens());
  Value pos = graph.embedding("pos", wpe, ids);
  Value x = graph.add("x", tok, pos);
  for (size_t i = 0; i < model.layers.size(); ++i) {
    int64_t index = static_cast<int64_t>(i);
    graph.enter(model.attnPrefixes[i], index);
    x = buildAttention(graph, config, model.layers[i], index, x);
    graph.enter(model.ffnPrefixes[i], index);
    x = buildFeedForward(graph, config, model.layers[i], x);
  }
  graph.enter(model.normPrefix);
  Value gamma = graph.load("lnf_g", model.norm);
  Value beta = graph.loadIfAny("lnf_b", model.normBias);
  Value n = graph.layerNorm("lnf", x, gamma, beta, config.eps);
  graph.enter(model.headPrefix);
  Value head = graph.load("head", model.head);
  return graph.finish(graph.linear("logits", n, head, /*bias=*/{}));
}
