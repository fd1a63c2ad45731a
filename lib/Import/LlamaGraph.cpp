//===- LlamaGraph.cpp - The LLaMA forward pass ----------------------------===//

#include "LlamaGraph.h"
#include "GraphBuilder.h"
#include <cmath>

using namespace mlir;
using namespace gptc;
using namespace gptc::importer;

static Value buildAttention(GraphBuilder &graph, const LlamaConfig &config,
                            const LlamaLayer &layer, gpt::RopeAttr rope,
                            Value positions, Value x) {
  Value norm = graph.load("attn_norm", layer.attnNorm);
  Value wq = graph.load("wq", layer.q);
  Value bq = graph.loadIfAny("bq", layer.qBias);
  Value wk = graph.load("wk", layer.k);
  Value bk = graph.loadIfAny("bk", layer.kBias);
  Value wv = graph.load("wv", layer.v);
  Value bv = graph.loadIfAny("bv", layer.vBias);
  Value wo = graph.load("wo", layer.o);
  Value bo = graph.loadIfAny("bo", layer.oBias);
  Value n = graph.rmsNorm("n", x, norm, config.eps);
  Value q = graph.linear("q", n, wq, bq);
  Value k = graph.linear("k", n, wk, bk);
  Value v = graph.linear("v", n, wv, bv);
  Value qh = graph.splitHeads("qh", q, config.heads);
  Value kh = graph.splitHeads("kh", k, config.kvHeads);
  Value vh = graph.splitHeads("vh", v, config.kvHeads);
  Value qr = graph.rope("qr", qh, positions, rope);
  Value kr = graph.rope("kr", kh, positions, rope);
  double scale = 1 / std::sqrt(static_cast<double>(config.headSize));
  Value heads =
      graph.attention(qr, kr, vh, scale, config.heads / config.kvHeads);
  Value merged = graph.mergeHeads("merged", heads);
  Value out = graph.linear("attn", merged, wo, bo);
  return graph.add("mid", x, out);
}

static Value buildFeedForward(GraphBuilder &graph, const LlamaConfig &config,
                              const LlamaLayer &layer, Value x) {
  Value norm = graph.load("ffn_norm", layer.ffnNorm);
  Value wgate = graph.load("wgate", layer.gate);
  Value bgate = graph.loadIfAny("bgate", layer.gateBias);
  Value wup = graph.load("wup", layer.up);
  Value bup = graph.loadIfAny("bup", layer.upBias);
  Value wdown = graph.load("wdown", layer.down);
  Value bdown = graph.loadIfAny("bdown", layer.downBias);
  Value n = graph.rmsNorm("m", x, norm, config.eps);
  Value gate = graph.linear("gate", n, wgate, bgate);
  Value up = graph.linear("up", n, wup, bup);
  Value act = graph.activation("act", config.activation, gate);
  Value gated = graph.multiply("gated", act, up);
  Value down = graph.linear("down", gated, wdown, bdown);
  return graph.add("out", x, down);
}

OwningOpRef<ModuleOp> importer::buildLlama(MLIRContext &context,
                                           const LlamaModel &model,
                                           const Weights &weights,
                                           int64_t vocab) {
  const LlamaConfig &config = model.config;
  GraphBuilder graph(context, weights.claimed(), vocab);
  gpt::RopeScalingAttr scaling;
  if (config.ropeScaling)
    scaling = gpt::RopeScalingAttr::get(
        &context, config.ropeScaling->factor, config.ropeScaling->low,
        config.ropeScaling->high, config.ropeScaling->original);
  auto rope = gpt::RopeAttr::get(&context, config.ropeBase, config.ropePairs,
                                 config.headSize, scaling);

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
