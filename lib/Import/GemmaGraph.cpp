//===- GemmaGraph.cpp - The Gemma forward pass ----------------------------===//

#include "GemmaGraph.h"
#include "GraphBuilder.h"
#include <cmath>

using namespace mlir;
using namespace gptc;
using namespace gptc::importer;

namespace {
/// Builds the layers, all of one configuration.
class GemmaBuilder {
public:
  GemmaBuilder(GraphBuilder &graph, const GemmaConfig &config,
               gpt::RopeAttr rope)
      : graph(graph), config(config), rope(rope) {}

  Value embed(Weight tokens);
  Value attention(const GemmaLayer &layer, Value x);
  Value feedForward(const GemmaLayer &layer, Value x);
  Value norm(llvm::StringRef name, llvm::StringRef scaleName, Weight weight,
             Value x);

private:
  GraphBuilder &graph;
  const GemmaConfig &config;
  gpt::RopeAttr rope;
  Value positions, one;
};
} // namespace

/// The root of the width is rounded to f32, as transformers does for a model in
/// f32 (in bf16 it rounds once more).
Value GemmaBuilder::embed(Weight tokens) {
  Value table = graph.load("embed", tokens);
  Value rows = graph.embedding("tok", table, graph.tokens());
  positions = graph.positions("pos", graph.tokens());
  if (config.normsLessOne)
    one = graph.constant("one", config.width, 1);
  return graph.scale("x", rows, std::sqrt(static_cast<double>(config.width)));
}

Value GemmaBuilder::norm(llvm::StringRef name, llvm::StringRef scaleName,
                         Weight weight, Value x) {
  Value gamma = graph.load(scaleName, weight);
  if (config.normsLessOne)
    gamma = graph.add((scaleName + "_1").str(), gamma, one);
  return graph.rmsNorm(name, x, gamma, config.eps);
}

Value GemmaBuilder::attention(const GemmaLayer &layer, Value x) {
  Value n = norm("n", "attn_norm", layer.attnNorm, x);
  Value wq = graph.load("wq", layer.q);
  Value bq = graph.loadIfAny("bq", layer.qBias);
  Value wk = graph.load("wk", layer.k);
  Value bk = graph.loadIfAny("bk", layer.kBias);
  Value wv = graph.load("wv", layer.v);
  Value bv = graph.loadIfAny("bv", layer.vBias);
  Value wo = graph.load("wo", layer.o);
  Value bo = graph.loadIfAny("bo", layer.oBias);
  Value q = graph.linear("q", n, wq, bq);
  Value k = graph.linear("k", n, wk, bk);
  Value v = graph.linear("v", n, wv, bv);
  Value qh = graph.splitHeads("qh", q, config.heads);
  Value kh = graph.splitHeads("kh", k, config.kvHeads);
  Value vh = graph.splitHeads("vh", v, config.kvHeads);
  Value qr = graph.rope("qr", qh, positions, rope);
  Value kr = graph.rope("kr", kh, positions, rope);
  Value heads = graph.attention(qr, kr, vh, config.scoreScale,
                                config.heads / config.kvHeads, layer.window,
                                config.scoreCap);
  Value merged = graph.mergeHeads("merged", heads);
  Value out = graph.linear("attn", merged, wo, bo);
  if (layer.attnPostNorm)
    out = norm("attn_n", "attn_post_norm", layer.attnPostNorm, out);
  return graph.add("mid", x, out);
}

Value GemmaBuilder::feedForward(const GemmaLayer &layer, Value x) {
  Value n = norm("m", "ffn_norm", layer.ffnNorm, x);
  Value wgate = graph.load("wgate", layer.gate);
  Value wup = graph.load("wup", layer.up);
  Value wdown = graph.load("wdown", layer.down);
  Value gate = graph.linear("gate", n, wgate, /*bias=*/{});
  Value up = graph.linear("up", n, wup, /*bias=*/{});
  Value act = graph.activation("act", config.activation, gate);
  Value gated = graph.multiply("gated", act, up);
  Value down = graph.linear("down", gated, wdown, /*bias=*/{});
  if (layer.ffnPostNorm)
    down = norm("down_n", "ffn_post_norm", layer.ffnPostNorm, down);
  return graph.add("out", x, down);
}

OwningOpRef<ModuleOp> importer::buildGemma(MLIRContext &context,
                                           const GemmaModel &model,
                                           const Weights &weights,
                                           int64_t vocab) {
  const GemmaConfig &config = model.config;
  GraphBuilder graph(context, weights.claimed(), vocab);
  GemmaBuilder builder(graph, config, config.rope.attribute(context));
  graph.enter(model.tokensPrefix);
  Value x = builder.embed(model.tokens);
  for (size_t i = 0; i < model.layers.size(); ++i) {
    int64_t index = static_cast<int64_t>(i);
    graph.enter(model.attnPrefixes[i], index);
    x = builder.attention(model.layers[i], x);
    graph.enter(model.ffnPrefixes[i], index);
    x = builder.feedForward(model.layers[i], x);
  }
  graph.enter(model.normPrefix);
  Value n = builder.norm("n", "norm", model.norm, x);
  graph.enter(model.headPrefix);
  Value head = graph.load("head", model.head);
  Value logits = graph.linear("logits", n, head, /*bias=*/{});
  if (config.logitCap)
    logits = graph.softcap("capped", logits, *config.logitCap);
  return graph.finish(logits);
}
