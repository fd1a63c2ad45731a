//===- LlamaHf.cpp - LLaMA and its relatives from config.json -------------===//
//
// Rotary pairs are (i, i + D/2). The head is `lm_head.weight`, or the token
// embedding where config.json ties it and the file has no other one.
//
// Refuses what Rope.h refuses, odd head sizes, and quantised checkpoints.
//
//===----------------------------------------------------------------------===//

#include "LlamaHf.h"
#include "Fields.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::importer;
using checkpoint::Expected;
using checkpoint::json::Reader;

/// Sizes and what else is one number or name.
static Expected<LlamaHfConfig> readSizes(const Reader &json, ModelInfo &info,
                                         const LlamaDefaults &absent) {
  Fields fields(json);
  LlamaHfConfig config;
  info.layers = fields.size("num_hidden_layers");
  info.vocab = fields.size("vocab_size");
  info.context = fields.size("max_position_embeddings");
  config.width = fields.size("hidden_size");
  config.heads = fields.size("num_attention_heads");
  // Null means as many as heads.
  bool stated = json.value().find("num_key_value_heads") != nullptr;
  config.kvHeads = fields.sizeOr(
      "num_key_value_heads",
      stated || absent.kvHeads == 0 ? config.heads : absent.kvHeads);
  config.inner = fields.size("intermediate_size");
  config.eps = fields.positive("rms_norm_eps");
  fields.requireMultiple("num_attention_heads", config.heads,
                         "num_key_value_heads", config.kvHeads);
  bool ownHeadSize = json.has("head_dim") || absent.headSize != 0;
  if (!ownHeadSize)
    fields.requireMultiple("hidden_size", config.width, "num_attention_heads",
                           config.heads);
  config.headSize = fields.sizeOr(
      "head_dim",
      absent.headSize != 0 ? absent.headSize : config.width / config.heads);
  fields.requireRotaryHeadSize(ownHeadSize ? "head_dim" : "hidden_size",
                               config.headSize);
  config.activation = readActivation(fields, "hidden_act", "silu");
  config.tied = fields.booleanOr("tie_word_embeddings", false);
  if (fields.failed())
    return fields.error();
  return config;
}

Expected<LlamaHfConfig> importer::readLlamaConfig(const Reader &json,
                                                  ModelInfo &info,
                                                  const LlamaDefaults &absent) {
  auto config = readSizes(json, info, absent);
  if (!config)
    return config.error();
  auto rope = readRope(json, config->headSize);
  if (!rope)
    return rope.error();
  config->rope = *rope;
  if (auto read = readSpecialTokens(json, info); !read)
    return read.error();
  if (auto read = refuseQuantization(json); !read)
    return read.error();
  return config;
}

Expected<std::optional<int64_t>>
importer::readWindow(const Reader &json, const ModelInfo &info,
                     std::optional<int64_t> absent) {
  std::optional<int64_t> window = absent;
  if (const checkpoint::json::Value *value =
          json.value().find("sliding_window")) {
    Fields fields(json);
    window = value->isNull()
                 ? std::nullopt
                 : std::optional<int64_t>(fields.size("sliding_window"));
    if (fields.failed())
      return fields.error();
  }
  if (window && *window >= info.context)
    window = std::nullopt;
  return window;
}

static void claimAttention(const LlamaHfConfig &config, const std::string &at,
                           Weights &weights, LlamaLayer &layer) {
  int64_t c = config.width;
  int64_t q = config.heads * config.headSize;
  int64_t kv = config.kvHeads * config.headSize;
  auto bias = [&](bool stored, const char *name, int64_t size) {
    return stored ? weights.claim(at + name, {size}) : nullptr;
  };
  if (config.packed) {
    layer.qkv = weights.claim(at + "qkv_proj.weight", {q + 2 * kv, c});
    layer.qkvBias = bias(config.qkvBias, "qkv_proj.bias", q + 2 * kv);
  } else {
    layer.q = weights.claim(at + "q_proj.weight", {q, c});
    layer.qBias = bias(config.qkvBias, "q_proj.bias", q);
    layer.k = weights.claim(at + "k_proj.weight", {kv, c});
    layer.kBias = bias(config.qkvBias, "k_proj.bias", kv);
    layer.v = weights.claim(at + "v_proj.weight", {kv, c});
    layer.vBias = bias(config.qkvBias, "v_proj.bias", kv);
  }
  if (config.headNorms) {
    layer.qNorm = weights.claim(at + "q_norm.weight", {config.headSize});
    layer.kNorm = weights.claim(at + "k_norm.weight", {config.headSize});
  }
  layer.o = weights.claim(at + "o_proj.weight", {c, q});
  layer.oBias = bias(config.outBias, "o_proj.bias", c);
}

static void claimFeedForward(const LlamaHfConfig &config, const std::string &at,
                             Weights &weights, LlamaLayer &layer) {
  int64_t c = config.width, f = config.inner;
  auto bias = [&](const char *name, int64_t size) {
    return config.mlpBias ? weights.claim(at + name, {size}) : nullptr;
  };
  if (config.packed) {
    layer.gateUp = weights.claim(at + "gate_up_proj.weight", {2 * f, c});
  } else {
    layer.gate = weights.claim(at + "gate_proj.weight", {f, c});
    layer.gateBias = bias("gate_proj.bias", f);
    layer.up = weights.claim(at + "up_proj.weight", {f, c});
    layer.upBias = bias("up_proj.bias", f);
  }
  layer.down = weights.claim(at + "down_proj.weight", {c, f});
  layer.downBias = bias("down_proj.bias", c);
}

Graph importer::importLlamaHf(MLIRContext &context,
                              const checkpoint::Checkpoint &checkpoint,
                              const LlamaHfConfig &config, Weights &weights,
                              ModelInfo &info) {
  std::string prefix = weights.stored("embed_tokens.weight") ? "" : "model.";
  LlamaModel model;
  model.config = config;
  model.tokensPrefix = prefix + "embed_tokens";
  model.normPrefix = prefix + "norm";
  bool tied =
      config.tied && !hasOtherHead(checkpoint, "lm_head.weight",
                                   model.tokensPrefix + ".weight", info);
  model.headPrefix = tied ? model.tokensPrefix : "lm_head";
  model.tokens =
      weights.claim(model.tokensPrefix + ".weight", {info.vocab, config.width});
  for (int64_t i = 0; i < info.layers && !weights.hopeless(); ++i) {
    std::string at = fmt::format("{}layers.{}.", prefix, i);
    LlamaLayer layer;
    layer.attnNorm =
        weights.claim(at + "input_layernorm.weight", {config.width});
    claimAttention(config, at + "self_attn.", weights, layer);
    layer.ffnNorm =
        weights.claim(at + "post_attention_layernorm.weight", {config.width});
    claimFeedForward(config, at + "mlp.", weights, layer);
    if (config.sliding.empty() ? i >= config.slidingFrom : config.sliding[i])
      layer.window = config.window;
    model.layers.push_back(layer);
    model.attnPrefixes.push_back(at + "self_attn");
    model.ffnPrefixes.push_back(at + "mlp");
  }
  model.norm = weights.claim(model.normPrefix + ".weight", {config.width});
  model.head =
      weights.claim(model.headPrefix + ".weight", {info.vocab, config.width});
  if (weights.failed())
    return weights.error();
  return buildLlama(context, model, weights, info.vocab);
}
