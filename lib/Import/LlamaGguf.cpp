//===- LlamaGguf.cpp - LLaMA from a GGUF file -----------------------------===//
//
// Hyperparameters are the keys `llama.*` of the metadata. llama.cpp stores the
// rows of Q and K so that rotary pairs are adjacent channels (2i, 2i + 1). The
// head is `output.weight`, or the token embedding where that is absent. Biases
// are used where they are stored.
//
// Refuses, by name: mixtures of experts, rotary scaling (`rope.scaling.type`,
// `rope_freqs.weight`), partial rotation, keys and values of different size.
// Source: the GGUF specification's list of standard keys and tensor names.
//
//===----------------------------------------------------------------------===//

#include "GgufCommon.h"
#include "LlamaGraph.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::importer;
using checkpoint::Checkpoint;
using checkpoint::Error;
using checkpoint::Expected;
using checkpoint::gguf::Metadata;

static Expected<LlamaConfig> readConfig(const Metadata &metadata,
                                        ModelInfo &info) {
  Fields fields(metadata);
  LlamaConfig config;
  info.layers = fields.size("llama.block_count");
  info.context = fields.size("llama.context_length");
  config.width = fields.size("llama.embedding_length");
  config.inner = fields.size("llama.feed_forward_length");
  config.heads = fields.size("llama.attention.head_count");
  config.kvHeads = fields.sizeOr("llama.attention.head_count_kv", config.heads);
  config.eps =
      asWritten(fields.positive("llama.attention.layer_norm_rms_epsilon"));
  config.ropeBase = asWritten(fields.ropeBaseOr("llama.rope.freq_base", 10000));
  config.ropePairs = gpt::RopePairs::Adjacent;
  fields.requireMultiple("llama.attention.head_count", config.heads,
                         "llama.attention.head_count_kv", config.kvHeads);
  if (!fields.has("llama.attention.key_length"))
    fields.requireMultiple("llama.embedding_length", config.width,
                           "llama.attention.head_count", config.heads);
  config.headSize =
      fields.sizeOr("llama.attention.key_length", config.width / config.heads);
  auto requireHeadSize = [&](const char *key) {
    int64_t got = fields.sizeOr(key, config.headSize);
    fields.require(
        got == config.headSize, key,
        fmt::format("expected the head size {}, got {}", config.headSize, got));
  };
  requireHeadSize("llama.attention.value_length");
  requireHeadSize("llama.rope.dimension_count");
  fields.require(
      (config.headSize % 2 == 0 && config.headSize <= 1 << 20) ||
          fields.failed(),
      "llama.embedding_length",
      fmt::format(
          "expected an even head size of at most 2^20 (rotary pairs), got {}",
          config.headSize));
  refuseGgufVariants(fields, "llama");
  readGgufTokens(fields, info);
  if (fields.failed())
    return fields.error();
  return config;
}

static LlamaLayer claimLayer(const LlamaConfig &config, const std::string &at,
                             Weights &weights) {
  int64_t c = config.width, f = config.inner;
  int64_t q = config.heads * config.headSize;
  int64_t kv = config.kvHeads * config.headSize;
  auto bias = [&](const char *name, int64_t size) {
    return weights.claimIfStored(at + name + ".bias", {size});
  };
  LlamaLayer layer;
  layer.attnNorm = weights.claim(at + "attn_norm.weight", {c});
  layer.q = weights.claim(at + "attn_q.weight", {q, c});
  layer.qBias = bias("attn_q", q);
  layer.k = weights.claim(at + "attn_k.weight", {kv, c});
  layer.kBias = bias("attn_k", kv);
  layer.v = weights.claim(at + "attn_v.weight", {kv, c});
  layer.vBias = bias("attn_v", kv);
  layer.o = weights.claim(at + "attn_output.weight", {c, q});
  layer.oBias = bias("attn_output", c);
  layer.ffnNorm = weights.claim(at + "ffn_norm.weight", {c});
  layer.gate = weights.claim(at + "ffn_gate.weight", {f, c});
  layer.gateBias = bias("ffn_gate", f);
  layer.up = weights.claim(at + "ffn_up.weight", {f, c});
  layer.upBias = bias("ffn_up", f);
  layer.down = weights.claim(at + "ffn_down.weight", {c, f});
  layer.downBias = bias("ffn_down", c);
  return layer;
}

Graph importer::importLlamaGguf(MLIRContext &context,
                                const Checkpoint &checkpoint, Weights &weights,
                                ModelInfo &info) {
  auto config = readConfig(checkpoint.metadata(), info);
  if (!config)
    return config.error();
  auto vocab = readGgufVocab(checkpoint, "llama");
  if (!vocab)
    return vocab.error();
  info.vocab = *vocab;
  if (weights.stored("rope_freqs.weight"))
    return Error{checkpoint.path() +
                 ": tensor 'rope_freqs.weight': rotary scaling by stored "
                 "factors is not supported; import the Hugging Face checkpoint "
                 "of the model instead"};
  LlamaModel model;
  model.config = *config;
  model.tokensPrefix = "token_embd";
  model.normPrefix = "output_norm";
  model.headPrefix =
      weights.stored("output.weight") ? "output" : model.tokensPrefix;
  model.tokens = weights.claim("token_embd.weight", {*vocab, config->width});
  for (int64_t i = 0; i < info.layers && !weights.failed(); ++i) {
    std::string at = fmt::format("blk.{}.", i);
    model.layers.push_back(claimLayer(*config, at, weights));
    model.attnPrefixes.push_back(at + "attn");
    model.ffnPrefixes.push_back(at + "ffn");
  }
  model.norm = weights.claim("output_norm.weight", {config->width});
  model.head =
      weights.claim(model.headPrefix + ".weight", {*vocab, config->width});
  if (weights.failed())
    return weights.error();
  return buildLlama(context, model, weights, *vocab);
}
