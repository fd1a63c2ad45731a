//===- LlamaGraph.cpp - The LLaMA forward pass ----------------------------===//

#include "LlamaGraph.h"
#include "GraphBuilder.h"
#include <cmath>

using namespace mlir;
using namespace gptc;
using namespace gptc::importer;

namespace {
/// A weight and its bias, which may be null.
struct Linear {
  Value weight, bias;
};
} // namespace

static Linear loadLinear(GraphBuilder &graph, llvm::StringRef name,
                         Weight weight, Weight bias) {
  Value loaded = graph.load(("w" + name).str(), weight);
  return {loaded, graph.loadIfAny(("b" + name).str(), bias)};
}

static Value apply(GraphBuilder &graph, llvm::StringRef name, Value x,
                   const Linear &by) {
  return graph.linear(name, x, by.weight, by.bias);
}

static Value buildAttention(GraphBuilder &graph, const LlamaConfig &config,
                            const LlamaLayer &layer, gpt::RopeAttr rope,
                            Value positions, Value x) {
  Value norm = graph.load("attn_norm", layer.attnNorm);
  Linear wq, wk, wv, wqkv;
  if (layer.qkv) {
    wqkv = loadLinear(graph, "qkv", layer.qkv, layer.qkvBias);
  } else {
    wq = loadLinear(graph, "q", layer.q, layer.qBias);
    wk = loadLinear(graph, "k", layer.k, layer.kBias);
    wv = loadLinear(graph, "v", layer.v, layer.vBias);
  }
  Value qNorm = graph.loadIfAny("q_norm", layer.qNorm);
  Value kNorm = graph.loadIfAny("k_norm", layer.kNorm);
  Linear wo = loadLinear(graph, "o", layer.o, layer.oBias);

  Value n = graph.rmsNorm("n", x, norm, config.eps);
  Value q, k, v;
  if (layer.qkv) {
    int64_t kv = config.kvHeads * config.headSize;
    auto parts = graph.split("part", apply(graph, "qkv", n, wqkv),
                             {config.heads * config.headSize, kv, kv});
    q = parts[0], k = parts[1], v = parts[2];
  } else {
    q = apply(graph, "q", n, wq);
    k = apply(graph, "k", n, wk);
    v = apply(graph, "v", n, wv);
  }
  Value qh = graph.splitHeads("qh", q, config.heads);
  Value kh = graph.splitHeads("kh", k, config.kvHeads);
  Value vh = graph.splitHeads("vh", v, config.kvHeads);
  if (qNorm)
    qh = graph.rmsNorm("qn", qh, qNorm, config.eps);
  if (kNorm)
    kh = graph.rmsNorm("kn", kh, kNorm, config.eps);
  Value qr = graph.rope("qr", qh, positions, rope);
  Value kr = graph.rope("kr", kh, positions, rope);
  double scale = 1 / std::sqrt(static_cast<double>(config.headSize));
  Value heads = graph.attention(qr, kr, vh, scale,
                                config.heads / config.kvHeads, layer.window);
  Value merged = graph.mergeHeads("merged", heads);
  return graph.add("mid", x, apply(graph, "attn", merged, wo));
}

static Value buildFeedForward(GraphBuilder &graph, const LlamaConfig &config,
                              const LlamaLayer &layer, Value x) {
  Value norm = graph.load("ffn_norm", layer.ffnNorm);
  Linear wgate, wup, wgateUp;
  if (layer.gateUp) {
    wgateUp = loadLinear(graph, "gate_up", layer.gateUp, nullptr);
  } else {
    wgate = loadLinear(graph, "gate", layer.gate, layer.gateBias);
    wup = loadLinear(graph, "up", layer.up, layer.upBias);
  }
  Linear wdown = loadLinear(graph, "down", layer.down, layer.downBias);

  Value n = graph.rmsNorm("m", x, norm, config.eps);
  Value gate, up;
  if (layer.gateUp) {
    auto halves = graph.split("half", apply(graph, "gate_up", n, wgateUp), 2);
    gate = halves[0], up = halves[1];
  } else {
    gate = apply(graph, "gate", n, wgate);
    up = apply(graph, "up", n, wup);
  }
  Value act = graph.activation("act", config.activation, gate);
  Value gated = graph.multiply("gated", act, up);
  return graph.add("out", x, apply(graph, "down", gated, wdown));
}

OwningOpRef<ModuleOp> importer::buildLlama(MLIRContext &context,
                                           const LlamaModel &model,
                                           const Weights &weights,
                                           int64_t vocab) {
  const LlamaConfig &config = model.config;
  GraphBuilder graph(context, weights.claimed(), vocab);
  gpt::RopeAttr rope = config.rope.attribute(context);

  graph.enter(model.tokensPrefix);
  Value table = graph.load("embed", model.tokens);
  Value x = graph.embedding("x", table, graph.tokens());
  Value positions = graph.positions("pos", graph.tokens());
  for (size_t i = 0; i < model.layers.size(); ++i) {
    int64_t index = static_cast<int64_t>(i);
    graph.enter(model.attnPrefixes[i], index);
    x = buildAttention(graph, config, model.layers[i], rope, positions, x);
    graph.enter(model.ffnPrefixes[i], index);
    x = buildFeedForward(graph, config, model.layers[i], x);
  }
  graph.enter(model.normPrefix);
  Value norm = graph.load("norm", model.norm);
  Value n = graph.rmsNorm("n", x, norm, config.eps);
  graph.enter(model.headPrefix);
  Value head = graph.load("head", model.head);
  return graph.finish(graph.linear("logits", n, head, /*bias=*/{}));
}
