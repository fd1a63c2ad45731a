//===- GemmaGguf.cpp - Gemma and Gemma 2 from a GGUF file -----------------===//
//
// Hyperparameters are the keys `gemma.*` or `gemma2.*` of the metadata. Norm
// weights are stored with the 1 added, rows of Q and K as Hugging Face has
// them. The head is `output.weight`, or the token embedding where that is
// absent. Gemma 2's layers slide from the first on, every other one; its scores
// are scaled by the head size, in the largest model (46 layers) by the width of
// a head in the residual stream: the format has no query_pre_attn_scalar, and
// llama.cpp tells them apart so. It reads no `attention.scale`, so another one
// is refused.
//
// Refuses, by name: rotary scaling, partial rotation, keys and values of
// different size.
// Source: the GGUF specification's list of standard keys and tensor names.
//
//===----------------------------------------------------------------------===//

#include "GemmaGraph.h"
#include "GgufCommon.h"
#include <cmath>

using namespace mlir;
using namespace gptc;
using namespace gptc::importer;
using checkpoint::Checkpoint;
using checkpoint::Expected;
using checkpoint::gguf::Metadata;

namespace {
struct GgufConfig : GemmaConfig {
  bool isGemma2 = false;
  int64_t window = 0;
};
} // namespace

static void readRope(Fields<Metadata> &fields, GgufKeys key,
                     GemmaConfig &config) {
  Rope &rope = config.rope;
  rope.headSize = config.headSize;
  rope.base = asWritten(fields.ropeBaseOr(key("rope.freq_base"), 10000));
  rope.rotary = fields.sizeOr(key("rope.dimension_count"), config.headSize);
  fields.require(fields.failed() || rope.rotary == config.headSize,
                 key("rope.dimension_count"),
                 fmt::format("expected the head size {}, got {}",
                             config.headSize, rope.rotary));
  refuseGgufRopeScaling(fields, key);
}

/// What only Gemma 2 has.
static void readGemma2(Fields<Metadata> &fields, GgufKeys key, int64_t layers,
                       GgufConfig &config) {
  config.isGemma2 = true;
  config.window = fields.sizeOr(key("attention.sliding_window"), 4096);
  config.scoreCap =
      asWritten(fields.positiveOr(key("attn_logit_softcapping"), 50));
  config.logitCap =
      asWritten(fields.positiveOr(key("final_logit_softcapping"), 30));
  if (layers == 46)
    config.scoreScale =
        1 / std::sqrt(static_cast<double>(config.width / config.heads));
}

static Expected<GgufConfig> readConfig(const Metadata &metadata, GgufKeys key,
                                       ModelInfo &info) {
  Fields fields(metadata);
  GgufConfig config;
  readGgufSizes(fields, key, config, info);
  config.eps =
      asWritten(fields.positive(key("attention.layer_norm_rms_epsilon")));
  config.normsLessOne = false;
  readRope(fields, key, config);
  config.scoreScale = 1 / std::sqrt(static_cast<double>(config.headSize));
  if (key.architecture == "gemma2")
    readGemma2(fields, key, info.layers, config);
  double stated = fields.positiveOr(key("attention.scale"), config.scoreScale);
  fields.require(fields.failed() || static_cast<float>(stated) ==
                                        static_cast<float>(config.scoreScale),
                 key("attention.scale"),
                 fmt::format("expected {}, which is what the head size gives, "
                             "got {}",
                             static_cast<float>(config.scoreScale), stated));
  refuseGgufExperts(fields, key);
  readGgufTokens(fields, info);
  if (fields.failed())
    return fields.error();
  return config;
}

static GemmaLayer claimLayer(const GgufConfig &config, const std::string &at,
                             Weights &weights) {
  int64_t c = config.width, f = config.inner;
  int64_t q = config.heads * config.headSize;
  int64_t kv = config.kvHeads * config.headSize;
  auto matrix = [&](const char *name, int64_t out, int64_t in) {
    return weights.claim(at + name + ".weight", {out, in});
  };
  auto norm = [&](const char *name) {
    return weights.claim(at + name + ".weight", {c});
  };
  GemmaLayer layer;
  layer.attnNorm = norm("attn_norm");
  layer.q = matrix("attn_q", q, c);
  layer.k = matrix("attn_k", kv, c);
  layer.v = matrix("attn_v", kv, c);
  layer.o = matrix("attn_output", c, q);
  if (config.isGemma2)
    layer.attnPostNorm = norm("post_attention_norm");
  layer.ffnNorm = norm("ffn_norm");
  layer.gate = matrix("ffn_gate", f, c);
  layer.up = matrix("ffn_up", f, c);
  layer.down = matrix("ffn_down", c, f);
  if (config.isGemma2)
    layer.ffnPostNorm = norm("post_ffw_norm");
  return layer;
}

static Graph importEither(MLIRContext &context, const Checkpoint &checkpoint,
                          Weights &weights, ModelInfo &info,
                          std::string_view architecture) {
  auto config = readConfig(checkpoint.metadata(), {architecture}, info);
  if (!config)
    return config.error();
  auto vocab = readGgufVocab(checkpoint, {architecture});
  if (!vocab)
    return vocab.error();
  info.vocab = *vocab;
  GemmaModel model;
  model.config = *config;
  model.tokensPrefix = "token_embd";
  model.normPrefix = "output_norm";
  model.headPrefix =
      weights.stored("output.weight") ? "output" : model.tokensPrefix;
  model.tokens = weights.claim("token_embd.weight", {*vocab, config->width});
  for (int64_t i = 0; i < info.layers && !weights.hopeless(); ++i) {
    std::string at = fmt::format("blk.{}.", i);
    model.layers.push_back(claimLayer(*config, at, weights));
    if (config->isGemma2 && i % 2 == 0)
      model.layers.back().window = config->window;
    model.attnPrefixes.push_back(at + "attn");
    model.ffnPrefixes.push_back(at + "ffn");
  }
  model.norm = weights.claim("output_norm.weight", {config->width});
  model.head =
      weights.claim(model.headPrefix + ".weight", {*vocab, config->width});
  if (weights.failed())
    return weights.error();
  return buildGemma(context, model, weights, *vocab);
}

Graph importer::importGemmaGguf(MLIRContext &context,
                                const Checkpoint &checkpoint, Weights &weights,
                                ModelInfo &info) {
  return importEither(context, checkpoint, weights, info, "gemma");
}

Graph importer::importGemma2Gguf(MLIRContext &context,
                                 const Checkpoint &checkpoint, Weights &weights,
                                 ModelInfo &info) {
  return importEither(context, checkpoint, weights, info, "gemma2");
}
