//===- Llama.cpp - LLaMA from Hugging Face safetensors --------------------===//
//
// config.json in the style of transformers 4 (rope_theta, rope_scaling) or 5
// (rope_parameters). Rotary pairs are (i, i + D/2). Names may lack the prefix
// `model.`. The head is `lm_head.weight` unless config.json ties it.
//
// Refuses, by name: rotary types other than default and llama3, partial
// rotation, quantised checkpoints. Every parameter of llama3 is required.
//
//===----------------------------------------------------------------------===//

#include "Fields.h"
#include "LlamaGraph.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::importer;
using checkpoint::Checkpoint;
using checkpoint::Expected;
using checkpoint::json::Reader;

namespace {
struct HfConfig : LlamaConfig {
  bool attentionBias = false, mlpBias = false, tied = false;
};
} // namespace

/// Reads the object that names the rotary type: rope_scaling, or the whole of
/// rope_parameters.
static Expected<void> readRopeType(const Reader &rope, std::string_view key,
                                   const Reader &config, LlamaConfig &result) {
  Fields fields(rope);
  // Written `type` before transformers 4.43.
  std::string type = fields.stringOr("rope_type", fields.stringOr("type", ""));
  if (fields.failed())
    return fields.error();
  if (type == "default" || (type.empty() && key == "rope_parameters"))
    return {};
  if (type.empty())
    return config.error(key, "expected a 'rope_type', got none");
  if (type != "llama3")
    return config.error(
        key, fmt::format("rotary type {} is not supported: expected default "
                         "or llama3",
                         checkpoint::quote(type)));
  LlamaConfig::Scaling scaling;
  scaling.factor = fields.positive("factor");
  scaling.low = fields.positive("low_freq_factor");
  scaling.high = fields.positive("high_freq_factor");
  scaling.original = fields.size("original_max_position_embeddings");
  fields.require(
      scaling.high > scaling.low || fields.failed(), "high_freq_factor",
      fmt::format("expected more than 'low_freq_factor' ({}), got {}",
                  scaling.low, scaling.high));
  if (fields.failed())
    return fields.error();
  result.ropeScaling = scaling;
  return {};
}

static bool present(const Reader &config, std::string_view key) {
  const checkpoint::json::Value *value = config.value().find(key);
  return value && !value->isNull();
}

static Expected<void> readRope(const Reader &config, LlamaConfig &result) {
  Fields fields(config);
  result.ropeBase = fields.ropeBaseOr("rope_theta", 10000);
  double partial = fields.realOr("partial_rotary_factor", 1);
  fields.require(partial == 1, "partial_rotary_factor",
                 fmt::format("expected 1: partial rotation is not supported, "
                             "got {}",
                             partial));
  if (fields.failed())
    return fields.error();
  for (std::string_view key : {"rope_parameters", "rope_scaling"}) {
    if (!present(config, key))
      continue;
    auto rope = config.child(key);
    if (!rope)
      return rope.error();
    if (auto read = readRopeType(*rope, key, config, result); !read)
      return read.error();
    Fields nested(*rope);
    result.ropeBase = nested.ropeBaseOr("rope_theta", result.ropeBase);
    double nestedPartial = nested.realOr("partial_rotary_factor", 1);
    nested.require(nestedPartial == 1, "partial_rotary_factor",
                   "expected 1: partial rotation is not supported");
    if (nested.failed())
      return nested.error();
    break;
  }
  return {};
}

static Expected<HfConfig> readConfig(const Reader &json, ModelInfo &info) {
  Fields fields(json);
  HfConfig config;
  info.layers = fields.size("num_hidden_layers");
  info.vocab = fields.size("vocab_size");
  info.context = fields.size("max_position_embeddings");
  config.width = fields.size("hidden_size");
  config.heads = fields.size("num_attention_heads");
  config.kvHeads = fields.sizeOr("num_key_value_heads", config.heads);
  config.inner = fields.size("intermediate_size");
  config.eps = fields.positive("rms_norm_eps");
  fields.requireMultiple("num_attention_heads", config.heads,
                         "num_key_value_heads", config.kvHeads);
  if (!present(json, "head_dim"))
    fields.requireMultiple("hidden_size", config.width, "num_attention_heads",
                           config.heads);
  config.headSize = fields.sizeOr("head_dim", config.width / config.heads);
  fields.require(
      (config.headSize % 2 == 0 && config.headSize <= 1 << 20) ||
          fields.failed(),
      present(json, "head_dim") ? "head_dim" : "hidden_size",
      fmt::format(
          "expected an even head size of at most 2^20 (rotary pairs), got {}",
          config.headSize));
  std::string name = fields.stringOr("hidden_act", "silu");
  auto activation = activationNamed(name);
  fields.require(activation.has_value(), "hidden_act",
                 fmt::format("expected one of {}, got {}", activationNames(),
                             checkpoint::quote(name)));
  config.activation = activation.value_or(Activation::Silu);
  config.attentionBias = fields.booleanOr("attention_bias", false);
  config.mlpBias = fields.booleanOr("mlp_bias", false);
  config.tied = fields.booleanOr("tie_word_embeddings", false);
  if (fields.failed())
    return fields.error();
  if (auto read = readRope(json, config); !read)
    return read.error();
  if (auto read = readSpecialTokens(json, info); !read)
    return read.error();
  if (auto read = refuseQuantization(json); !read)
    return read.error();
  return config;
}

static LlamaLayer claimLayer(const HfConfig &config, const std::string &at,
                             Weights &weights) {
  int64_t c = config.width, f = config.inner;
  int64_t q = config.heads * config.headSize;
  int64_t kv = config.kvHeads * config.headSize;
  auto bias = [&](bool stored, const char *name, int64_t size) {
    return stored ? weights.claim(at + name, {size}) : nullptr;
  };
  LlamaLayer layer;
  layer.attnNorm = weights.claim(at + "input_layernorm.weight", {c});
  layer.q = weights.claim(at + "self_attn.q_proj.weight", {q, c});
  layer.qBias = bias(config.attentionBias, "self_attn.q_proj.bias", q);
  layer.k = weights.claim(at + "self_attn.k_proj.weight", {kv, c});
  layer.kBias = bias(config.attentionBias, "self_attn.k_proj.bias", kv);
  layer.v = weights.claim(at + "self_attn.v_proj.weight", {kv, c});
  layer.vBias = bias(config.attentionBias, "self_attn.v_proj.bias", kv);
  layer.o = weights.claim(at + "self_attn.o_proj.weight", {c, q});
  layer.oBias = bias(config.attentionBias, "self_attn.o_proj.bias", c);
  layer.ffnNorm = weights.claim(at + "post_attention_layernorm.weight", {c});
  layer.gate = weights.claim(at + "mlp.gate_proj.weight", {f, c});
  layer.gateBias = bias(config.mlpBias, "mlp.gate_proj.bias", f);
  layer.up = weights.claim(at + "mlp.up_proj.weight", {f, c});
  layer.upBias = bias(config.mlpBias, "mlp.up_proj.bias", f);
  layer.down = weights.claim(at + "mlp.down_proj.weight", {c, f});
  layer.downBias = bias(config.mlpBias, "mlp.down_proj.bias", c);
  return layer;
}

Graph importer::importLlama(MLIRContext &context, const Checkpoint &checkpoint,
                            Weights &weights, ModelInfo &info) {
  auto config = readConfig(checkpoint.configReader(), info);
  if (!config)
    return config.error();
  std::string prefix = weights.stored("embed_tokens.weight") ? "" : "model.";
  LlamaModel model;
  model.config = *config;
  model.tokensPrefix = prefix + "embed_tokens";
  model.normPrefix = prefix + "norm";
  model.headPrefix = config->tied ? model.tokensPrefix : "lm_head";
  model.tokens = weights.claim(model.tokensPrefix + ".weight",
                               {info.vocab, config->width});
  for (int64_t i = 0; i < info.layers && !weights.failed(); ++i) {
    std::string at = fmt::format("{}layers.{}.", prefix, i);
    model.layers.push_back(claimLayer(*config, at, weights));
    model.attnPrefixes.push_back(at + "self_attn");
    model.ffnPrefixes.push_back(at + "mlp");
  }
  model.norm = weights.claim(model.normPrefix + ".weight", {config->width});
  model.head =
      weights.claim(model.headPrefix + ".weight", {info.vocab, config->width});
  if (weights.failed())
    return weights.error();
  return buildLlama(context, model, weights, info.vocab);
}
