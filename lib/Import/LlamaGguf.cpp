//===- LlamaGguf.cpp - LLaMA and its relatives from a GGUF file -----------===//
//
// Hyperparameters are the keys `llama.*` (`qwen2.*`, ...) of the metadata. Of
// architecture llama, llama.cpp stores the rows of Q and K so that rotary pairs
// are adjacent channels (2i, 2i + 1); of the others, half a head apart. The
// head is `output.weight`, or the token embedding where that is absent. Biases
// are used where they are stored. `rope_freqs.weight` divides the rotary
// frequencies. A key `attention.sliding_window` means a window in every layer.
//
// Refuses, by name: mixtures of experts, rotary scaling other than linear
// (`rope.scaling.type`, the tensors `rope_factors_*` of longrope), partial
// rotation of llama, keys and values of different size.
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

namespace {
struct Architecture {
  std::string_view name;
  gpt::RopePairs pairs;
  /// attn_qkv, and ffn_up for gate and up.
  bool packed;
  /// attn_q_norm and attn_k_norm.
  bool headNorms;
  /// `rope.dimension_count` may be less than a head.
  bool partialRotary;
};
} // namespace

static constexpr Architecture architectures[] = {
    {"llama", gpt::RopePairs::Adjacent, false, false, false},
    {"qwen2", gpt::RopePairs::Half, false, false, false},
    {"qwen3", gpt::RopePairs::Half, false, true, false},
    {"phi3", gpt::RopePairs::Half, true, false, true},
};

/// One divisor for all frequencies, if there is one.
static void readScaling(Fields<Metadata> &fields, GgufKeys key, Rope &rope) {
  // Without a type a factor is linear; the last key is older than the others.
  std::string type = fields.stringOr(key("rope.scaling.type"), "linear");
  fields.require(type == "none" || type == "linear", key("rope.scaling.type"),
                 fmt::format("rotary scaling {} is not supported: expected "
                             "'none' or 'linear'",
                             checkpoint::quote(type)));
  double attention = fields.realOr(key("rope.scaling.attn_factor"), 1);
  fields.require(attention == 1, key("rope.scaling.attn_factor"),
                 fmt::format("expected 1: it belongs to rotary scalings that "
                             "are not supported, got {}",
                             attention));
  double factor = 1;
  for (const char *name : {"rope.scale_linear", "rope.scaling.factor"})
    // Converters write 0 for none.
    if (fields.has(key(name)) && fields.realOr(key(name), 1) != 0)
      factor = asWritten(fields.ropeFactor(key(name)));
  if (factor != 1 && type == "linear")
    rope.factors = {factor};
}

static void readRope(Fields<Metadata> &fields, GgufKeys key,
                     const Architecture &as, LlamaConfig &config) {
  Rope &rope = config.rope;
  rope.headSize = config.headSize;
  rope.pairs = as.pairs;
  rope.base = asWritten(fields.ropeBaseOr(key("rope.freq_base"), 10000));
  rope.rotary = fields.sizeOr(key("rope.dimension_count"), config.headSize);
  fields.require(
      rope.rotary == config.headSize ||
          (as.partialRotary && rope.rotary % 2 == 0 &&
           rope.rotary < config.headSize),
      key("rope.dimension_count"),
      fmt::format("expected the head size {}{}, got {}", config.headSize,
                  as.partialRotary ? ", or an even number below it" : "",
                  rope.rotary));
  readScaling(fields, key, rope);
}

static Expected<LlamaConfig> readConfig(const Metadata &metadata,
                                        const Architecture &as,
                                        std::optional<int64_t> &window,
                                        ModelInfo &info) {
  Fields fields(metadata);
  GgufKeys key{as.name};
  LlamaConfig config;
  readGgufSizes(fields, key, config, info);
  config.eps =
      asWritten(fields.positive(key("attention.layer_norm_rms_epsilon")));
  readRope(fields, key, as, config);
  refuseGgufExperts(fields, key);
  // Converters write 0 for none.
  if (fields.integerOr(key("attention.sliding_window"), 0) != 0)
    window = fields.size(key("attention.sliding_window"));
  if (window && *window >= info.context)
    window = std::nullopt;
  readGgufTokens(fields, info);
  if (fields.failed())
    return fields.error();
  return config;
}

/// `rope_freqs.weight` holds a divisor for each frequency, as Llama 3's scaling
/// is stored.
static Expected<void> readFactors(const Checkpoint &checkpoint,
                                  Weights &weights, Rope &rope) {
  for (const char *name :
       {"rope_factors_long.weight", "rope_factors_short.weight"})
    if (weights.stored(name))
      return Error{fmt::format("{}: tensor {}: rotary scaling 'longrope' is "
                               "not supported",
                               checkpoint.path(), checkpoint::quote(name))};
  const std::string name = "rope_freqs.weight";
  if (!weights.stored(name))
    return {};
  double all = rope.factors.empty() ? 1 : rope.factors.front();
  rope.factors.clear();
  for (float factor : weights.numbers(name, rope.rotary / 2)) {
    if (!gpt::isRopeFactor(factor) || !gpt::isRopeFactor(all * factor))
      return Error{fmt::format(
          "{}: tensor {}: expected finite factors of at least {}{}, got {} at "
          "{}",
          checkpoint.path(), checkpoint::quote(name), gpt::leastRopeFactor,
          all == 1 ? "" : fmt::format(", also times the linear factor {}", all),
          factor, rope.factors.size())};
    rope.factors.push_back(all * factor);
  }
  return {};
}

static LlamaLayer claimLayer(const LlamaConfig &config, const Architecture &as,
                             const std::string &at, Weights &weights) {
  int64_t c = config.width, f = config.inner;
  int64_t q = config.heads * config.headSize;
  int64_t kv = config.kvHeads * config.headSize;
  auto bias = [&](const char *name, int64_t size) {
    return weights.claimIfStored(at + name + ".bias", {size});
  };
  LlamaLayer layer;
  layer.attnNorm = weights.claim(at + "attn_norm.weight", {c});
  if (as.packed) {
    layer.qkv = weights.claim(at + "attn_qkv.weight", {q + 2 * kv, c});
    layer.qkvBias = bias("attn_qkv", q + 2 * kv);
  } else {
    layer.q = weights.claim(at + "attn_q.weight", {q, c});
    layer.qBias = bias("attn_q", q);
    layer.k = weights.claim(at + "attn_k.weight", {kv, c});
    layer.kBias = bias("attn_k", kv);
    layer.v = weights.claim(at + "attn_v.weight", {kv, c});
    layer.vBias = bias("attn_v", kv);
  }
  if (as.headNorms) {
    layer.qNorm = weights.claim(at + "attn_q_norm.weight", {config.headSize});
    layer.kNorm = weights.claim(at + "attn_k_norm.weight", {config.headSize});
  }
  layer.o = weights.claim(at + "attn_output.weight", {c, q});
  layer.oBias = bias("attn_output", c);
  layer.ffnNorm = weights.claim(at + "ffn_norm.weight", {c});
  if (as.packed) {
    layer.gateUp = weights.claim(at + "ffn_up.weight", {2 * f, c});
  } else {
    layer.gate = weights.claim(at + "ffn_gate.weight", {f, c});
    layer.gateBias = bias("ffn_gate", f);
    layer.up = weights.claim(at + "ffn_up.weight", {f, c});
    layer.upBias = bias("ffn_up", f);
  }
  layer.down = weights.claim(at + "ffn_down.weight", {c, f});
  layer.downBias = bias("ffn_down", c);
  return layer;
}

Graph importer::importLlamaGguf(MLIRContext &context,
                                const Checkpoint &checkpoint, Weights &weights,
                                ModelInfo &info) {
  auto name = checkpoint.metadata().string("general.architecture");
  if (!name)
    return name.error();
  const Architecture &as =
      *llvm::find_if(architectures, [&](const Architecture &each) {
        return each.name == *name;
      });
  std::optional<int64_t> window;
  auto config = readConfig(checkpoint.metadata(), as, window, info);
  if (!config)
    return config.error();
  auto vocab = readGgufVocab(checkpoint, {as.name});
  if (!vocab)
    return vocab.error();
  info.vocab = *vocab;
  if (auto read = readFactors(checkpoint, weights, config->rope); !read)
    return read.error();
  LlamaModel model;
  model.config = *config;
  model.tokensPrefix = "token_embd";
  model.normPrefix = "output_norm";
  model.headPrefix =
      weights.stored("output.weight") ? "output" : model.tokensPrefix;
  model.tokens = weights.claim("token_embd.weight", {*vocab, config->width});
  for (int64_t i = 0; i < info.layers && !weights.hopeless(); ++i) {
    std::string at = fmt::format("blk.{}.", i);
    model.layers.push_back(claimLayer(*config, as, at, weights));
    model.layers.back().window = window;
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
