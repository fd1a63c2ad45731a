//===- Gemma.cpp - Gemma and Gemma 2 from Hugging Face checkpoints --------===//
//
// config.json in the style of transformers 4 or 5. Names may lack the prefix
// `model.`. The head is the token embedding unless config.json unties it or the
// file has another one. Gemma's `hidden_act` "gelu" means the tanh
// approximation, as in transformers; where `hidden_activation` stands beside
// it, both must mean one function, since versions of transformers differ in
// which they read.
//
// Refuses, by name: rotary types other than default, linear and llama3, partial
// rotation, bidirectional attention, quantised checkpoints.
//
//===----------------------------------------------------------------------===//

#include "Fields.h"
#include "GemmaGraph.h"
#include <cmath>

using namespace mlir;
using namespace gptc;
using namespace gptc::importer;
using checkpoint::Checkpoint;
using checkpoint::Expected;
using checkpoint::json::Reader;

namespace {
struct HfConfig : GemmaConfig {
  bool attentionBias = false, tied = true, isGemma2 = false;
  int64_t window = 0;
  /// One per layer; none: every other one, from the first on.
  std::vector<bool> sliding;

  std::optional<int64_t> windowOf(int64_t layer) const {
    bool slides = sliding.empty() ? layer % 2 == 0 : sliding[layer];
    return isGemma2 && slides ? std::optional(window) : std::nullopt;
  }
};
using JsonFields = Fields<Reader>;
} // namespace

static Activation readGemmaActivation(JsonFields &fields, bool isGemma2) {
  constexpr std::string_view absent = "gelu_pytorch_tanh";
  if (isGemma2)
    return readActivation(fields, "hidden_activation", absent);
  Activation act = readActivation(fields, "hidden_act", absent);
  if (fields.stringOr("hidden_act", "gelu") == "gelu")
    act = Activation::GeluTanh;
  if (fields.has("hidden_activation"))
    fields.require(
        readActivation(fields, "hidden_activation", absent) == act,
        "hidden_activation",
        fmt::format("expected the function of 'hidden_act' ({}, where gelu is "
                    "the tanh approximation), got {}",
                    fields.stringOr("hidden_act", "gelu_pytorch_tanh"),
                    fields.stringOr("hidden_activation", "")));
  return act;
}

/// A cap that is absent is `absent`, one that is null is none.
static std::optional<double> readCap(JsonFields &fields, const Reader &json,
                                     const char *key, double absent) {
  const checkpoint::json::Value *value = json.value().find(key);
  if (value && value->isNull())
    return std::nullopt;
  return fields.positiveOr(key, absent);
}

/// Gemma 2: which layers slide, by `layer_types` or every other one from the
/// first on.
static Expected<void> readWindow(const Reader &json, int64_t layers,
                                 HfConfig &config) {
  Fields fields(json);
  config.window = fields.sizeOr("sliding_window", 4096);
  if (fields.failed())
    return fields.error();
  auto sliding = readSlidingLayers(json, layers);
  if (!sliding)
    return sliding.error();
  config.sliding = *sliding;
  bool slides = config.sliding.empty() || llvm::is_contained(*sliding, true);
  const checkpoint::json::Value *stated = json.value().find("sliding_window");
  if (slides && stated && stated->isNull())
    return json.error("sliding_window", "expected the window of the layers "
                                        "that slide, got null");
  return {};
}

static void readSizes(JsonFields &fields, HfConfig &config, ModelInfo &info) {
  info.layers = fields.size("num_hidden_layers");
  info.vocab = fields.size("vocab_size");
  info.context = fields.size("max_position_embeddings");
  config.width = fields.size("hidden_size");
  config.heads = fields.size("num_attention_heads");
  config.kvHeads = fields.size("num_key_value_heads");
  config.inner = fields.size("intermediate_size");
  // Never hidden_size / num_attention_heads.
  config.headSize = fields.sizeOr("head_dim", 256);
  fields.requireMultiple("num_attention_heads", config.heads,
                         "num_key_value_heads", config.kvHeads);
  fields.requireRotaryHeadSize("head_dim", config.headSize);
}

static Expected<HfConfig> readConfig(const Reader &json, bool isGemma2,
                                     ModelInfo &info) {
  Fields fields(json);
  HfConfig config;
  config.isGemma2 = isGemma2;
  readSizes(fields, config, info);
  config.eps = fields.positiveOr("rms_norm_eps", 1e-6);
  config.activation = readGemmaActivation(fields, isGemma2);
  config.attentionBias = fields.booleanOr("attention_bias", false);
  config.tied = fields.booleanOr("tie_word_embeddings", true);
  fields.require(!fields.booleanOr("use_bidirectional_attention", false),
                 "use_bidirectional_attention",
                 "expected false: only causal attention is supported");
  double scalar = static_cast<double>(config.headSize);
  if (isGemma2) {
    scalar = fields.positiveOr("query_pre_attn_scalar", 256);
    config.scoreCap = readCap(fields, json, "attn_logit_softcapping", 50);
    config.logitCap = readCap(fields, json, "final_logit_softcapping", 30);
  }
  config.scoreScale = 1 / std::sqrt(scalar);
  if (fields.failed())
    return fields.error();
  if (isGemma2)
    if (auto read = readWindow(json, info.layers, config); !read)
      return read.error();
  auto rope = readRope(json, config.headSize);
  if (!rope)
    return rope.error();
  if (rope->rotary != config.headSize)
    return json.error("partial_rotary_factor",
                      "expected 1: partial rotation is not supported");
  config.rope = *rope;
  if (auto read = readSpecialTokens(json, info); !read)
    return read.error();
  if (auto read = refuseQuantization(json); !read)
    return read.error();
  return config;
}

static GemmaLayer claimLayer(const HfConfig &config, const std::string &at,
                             Weights &weights) {
  int64_t c = config.width, f = config.inner;
  int64_t q = config.heads * config.headSize;
  int64_t kv = config.kvHeads * config.headSize;
  auto bias = [&](const char *name, int64_t size) {
    return config.attentionBias ? weights.claim(at + name, {size}) : nullptr;
  };
  auto norm = [&](const char *name) {
    return weights.claim(at + name + "_layernorm.weight", {c});
  };
  GemmaLayer layer;
  layer.attnNorm = weights.claim(at + "input_layernorm.weight", {c});
  layer.q = weights.claim(at + "self_attn.q_proj.weight", {q, c});
  layer.qBias = bias("self_attn.q_proj.bias", q);
  layer.k = weights.claim(at + "self_attn.k_proj.weight", {kv, c});
  layer.kBias = bias("self_attn.k_proj.bias", kv);
  layer.v = weights.claim(at + "self_attn.v_proj.weight", {kv, c});
  layer.vBias = bias("self_attn.v_proj.bias", kv);
  layer.o = weights.claim(at + "self_attn.o_proj.weight", {c, q});
  layer.oBias = bias("self_attn.o_proj.bias", c);
  if (config.isGemma2) {
    layer.attnPostNorm = norm("post_attention");
    layer.ffnNorm = norm("pre_feedforward");
    layer.ffnPostNorm = norm("post_feedforward");
  } else {
    layer.ffnNorm = norm("post_attention");
  }
  layer.gate = weights.claim(at + "mlp.gate_proj.weight", {f, c});
  layer.up = weights.claim(at + "mlp.up_proj.weight", {f, c});
  layer.down = weights.claim(at + "mlp.down_proj.weight", {c, f});
  return layer;
}

static Graph importEither(MLIRContext &context, const Checkpoint &checkpoint,
                          Weights &weights, ModelInfo &info, bool isGemma2) {
  auto config = readConfig(checkpoint.configReader(), isGemma2, info);
  if (!config)
    return config.error();
  std::string prefix = weights.stored("embed_tokens.weight") ? "" : "model.";
  GemmaModel model;
  model.config = *config;
  model.tokensPrefix = prefix + "embed_tokens";
  model.normPrefix = prefix + "norm";
  bool tied =
      config->tied && !hasOtherHead(checkpoint, "lm_head.weight",
                                    model.tokensPrefix + ".weight", info);
  model.headPrefix = tied ? model.tokensPrefix : "lm_head";
  model.tokens = weights.claim(model.tokensPrefix + ".weight",
                               {info.vocab, config->width});
  for (int64_t i = 0; i < info.layers && !weights.hopeless(); ++i) {
    std::string at = fmt::format("{}layers.{}.", prefix, i);
    model.layers.push_back(claimLayer(*config, at, weights));
    model.layers.back().window = config->windowOf(i);
    model.attnPrefixes.push_back(at + "self_attn");
    model.ffnPrefixes.push_back(at + "mlp");
  }
  model.norm = weights.claim(model.normPrefix + ".weight", {config->width});
  model.head =
      weights.claim(model.headPrefix + ".weight", {info.vocab, config->width});
  if (weights.failed())
    return weights.error();
  return buildGemma(context, model, weights, info.vocab);
}

Graph importer::importGemma(MLIRContext &context, const Checkpoint &checkpoint,
                            Weights &weights, ModelInfo &info) {
  return importEither(context, checkpoint, weights, info, /*isGemma2=*/false);
}

Graph importer::importGemma2(MLIRContext &context, const Checkpoint &checkpoint,
                             Weights &weights, ModelInfo &info) {
  return importEither(context, checkpoint, weights, info, /*isGemma2=*/true);
}
