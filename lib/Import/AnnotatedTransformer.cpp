//===- AnnotatedTransformer.cpp - the encoder-decoder of 2017 -------------===//
//
// Vaswani et al., "Attention Is All You Need" (arXiv:1706.03762), as The
// Annotated Transformer (Harvard NLP) writes it, from the state dict of its
// EncoderDecoder. Two entries:
//
//   @encode(src [S] ids, src_mask [S] booleans) -> memory [S, C]
//   @decode(memory, src_mask, tgt [T] ids, rows [R]) -> log_probs [R, V]
//
// src_mask is true where src is no padding, and log_probs are those of the
// token that follows each of the wanted rows of tgt. Norms stand before each
// sublayer and divide by the sample standard deviation plus eps; a query that
// sees no key attends to all alike (scores of -1e9); positions are the stored
// table.
//
// Sizes are those of the tensors. The number of heads is in none of them, so
// config.json says it: {"model_type": "annotated_transformer", "h": 8}. The
// other arguments of make_model may stand there and must then agree.
//
//===----------------------------------------------------------------------===//

#include "Families.h"
#include "Fields.h"
#include "GraphBuilder.h"
#include <cmath>
#include <set>

using namespace mlir;
using namespace gptc;
using namespace gptc::importer;
using checkpoint::Checkpoint;
using checkpoint::Error;
using checkpoint::Expected;

namespace {
struct Sizes {
  int64_t width, heads, inner, sourceVocab, targetVocab;
  int64_t sourceContext, targetContext;
  int64_t encoderLayers, decoderLayers;
  double eps;
};

struct Affine {
  Weight weight, bias;
};
struct Projections {
  Affine q, k, v, out;
};
struct FeedForward {
  Affine in, out;
};
/// One of the encoder has no `source`, and its norms are the first two.
struct Layer {
  Projections self, source;
  FeedForward feed;
  Affine norms[3];
};
struct Stack {
  std::vector<Layer> layers;
  Affine norm;
};
struct Embedding {
  Weight table, positions;
};
struct Model {
  Embedding source, target;
  Stack encoder, decoder;
  Affine generator;
};
} // namespace

/// The shape of a stored tensor of this rank, each size 1 to 2^31 - 1.
static Expected<std::vector<int64_t>> shapeOf(const Checkpoint &checkpoint,
                                              const std::string &name,
                                              size_t rank,
                                              std::string_view expected) {
  const checkpoint::TensorInfo *tensor = checkpoint.find(name);
  if (!tensor)
    return Error{fmt::format("{}: tensor {} is missing: expected shape {}",
                             checkpoint.path(), checkpoint::quote(name),
                             expected)};
  bool fits = tensor->shape.size() == rank;
  for (int64_t size : tensor->shape)
    fits &= size >= 1 && size <= INT32_MAX;
  if (!fits)
    return Error{fmt::format("{}: tensor {}: expected shape {}, got {}",
                             tensor->file, checkpoint::quote(name), expected,
                             checkpoint::shapeText(tensor->shape))};
  return tensor->shape;
}

/// How many layers the tensors named `<stack>.layers.N.` are of: N from 0 on,
/// none left out.
static Expected<int64_t> countLayers(const Checkpoint &checkpoint,
                                     const std::string &stack) {
  std::string prefix = stack + ".layers.";
  std::set<uint64_t> numbers;
  for (const checkpoint::TensorInfo &tensor : checkpoint.tensors()) {
    llvm::StringRef name = tensor.name;
    uint64_t number;
    if (name.consume_front(prefix) && !name.consumeInteger(10, number) &&
        name.starts_with("."))
      numbers.insert(number);
  }
  uint64_t expected = 0;
  for (uint64_t number : numbers)
    if (number == expected)
      ++expected;
  if (expected != numbers.size())
    return Error{fmt::format(
        "{}: expected the layers of {} to be numbered from 0 without a gap, "
        "got {} up to {} and no '{}{}'",
        checkpoint.path(), stack, numbers.size(), *numbers.rbegin(), prefix,
        expected)};
  if (numbers.empty())
    return Error{fmt::format("{}: expected tensors '{}0.' and so on, got none",
                             checkpoint.path(), prefix)};
  return static_cast<int64_t>(expected);
}

/// What the tensors say.
static Expected<Sizes> readShapes(const Checkpoint &checkpoint) {
  Sizes sizes;
  auto source =
      shapeOf(checkpoint, "src_embed.0.lut.weight", 2, "[src_vocab, d_model]");
  if (!source)
    return source.error();
  auto target =
      shapeOf(checkpoint, "tgt_embed.0.lut.weight", 2, "[tgt_vocab, d_model]");
  if (!target)
    return target.error();
  sizes.sourceVocab = (*source)[0];
  sizes.targetVocab = (*target)[0];
  sizes.width = (*source)[1];
  for (auto [name, context] :
       {std::pair("src_embed.1.pe", &sizes.sourceContext),
        std::pair("tgt_embed.1.pe", &sizes.targetContext)}) {
    auto table = shapeOf(checkpoint, name, 3, "[1, max_len, d_model]");
    if (!table)
      return table.error();
    *context = (*table)[1];
  }
  auto inner = shapeOf(checkpoint, "encoder.layers.0.feed_forward.w_1.weight",
                       2, "[d_ff, d_model]");
  if (!inner)
    return inner.error();
  sizes.inner = (*inner)[0];
  auto encoder = countLayers(checkpoint, "encoder");
  if (!encoder)
    return encoder.error();
  auto decoder = countLayers(checkpoint, "decoder");
  if (!decoder)
    return decoder.error();
  sizes.encoderLayers = *encoder;
  sizes.decoderLayers = *decoder;
  return sizes;
}

static Expected<void> readConfig(const Checkpoint &checkpoint, Sizes &sizes,
                                 ModelInfo &info) {
  auto json = checkpoint.configReader();
  Fields fields(json);
  fields.require(fields.has("h"), "h",
                 "is missing: expected the number of attention heads, which "
                 "no tensor tells (make_model's default is 8)");
  sizes.heads = fields.size("h");
  fields.require(fields.failed() || sizes.width % sizes.heads == 0, "h",
                 fmt::format("expected a divisor of d_model ({}), got {}",
                             sizes.width, sizes.heads));
  fields.require(fields.failed() || sizes.width >= 2, "h",
                 "expected a model of 2 channels or more, since its norms are "
                 "those of a sample, got 1");
  sizes.eps = fields.positiveOr("eps", 1e-6);
  for (auto [key, got] :
       {std::pair("d_model", sizes.width), std::pair("d_ff", sizes.inner),
        std::pair("src_vocab", sizes.sourceVocab),
        std::pair("tgt_vocab", sizes.targetVocab),
        std::pair("N", sizes.encoderLayers),
        std::pair("N", sizes.decoderLayers)}) {
    int64_t said = fields.sizeOr(key, got);
    fields.require(
        fields.failed() || said == got, key,
        fmt::format("expected {} as the tensors say, got {}", got, said));
  }
  if (fields.failed())
    return fields.error();
  return readSpecialTokens(json, info);
}

static Model claimWeights(const Sizes &sizes, Weights &weights) {
  const int64_t c = sizes.width, f = sizes.inner;
  auto affine = [&](const std::string &at, int64_t in, int64_t out) {
    return Affine{weights.claim(at + ".weight", {out, in}),
                  weights.claim(at + ".bias", {out})};
  };
  auto norm = [&](const std::string &at) {
    return Affine{weights.claim(at + ".a_2", {c}),
                  weights.claim(at + ".b_2", {c})};
  };
  auto projections = [&](const std::string &at) {
    auto linear = [&](int i) {
      return affine(fmt::format("{}.linears.{}", at, i), c, c);
    };
    return Projections{linear(0), linear(1), linear(2), linear(3)};
  };
  auto stack = [&](const std::string &name, int64_t layers, bool crosses) {
    Stack stack;
    for (int64_t i = 0; i < layers && !weights.hopeless(); ++i) {
      std::string at = fmt::format("{}.layers.{}.", name, i);
      Layer layer = {};
      layer.self = projections(at + "self_attn");
      if (crosses)
        layer.source = projections(at + "src_attn");
      layer.feed = {affine(at + "feed_forward.w_1", c, f),
                    affine(at + "feed_forward.w_2", f, c)};
      for (int64_t j = 0; j < (crosses ? 3 : 2); ++j)
        layer.norms[j] = norm(fmt::format("{}sublayer.{}.norm", at, j));
      stack.layers.push_back(layer);
    }
    stack.norm = norm(name + ".norm");
    return stack;
  };
  auto embedding = [&](const std::string &at, int64_t vocab, int64_t context) {
    return Embedding{weights.claim(at + ".0.lut.weight", {vocab, c}),
                     weights.claim(at + ".1.pe", {1, context, c})};
  };
  Model model;
  model.source = embedding("src_embed", sizes.sourceVocab, sizes.sourceContext);
  model.target = embedding("tgt_embed", sizes.targetVocab, sizes.targetContext);
  model.encoder = stack("encoder", sizes.encoderLayers, /*crosses=*/false);
  model.decoder = stack("decoder", sizes.decoderLayers, /*crosses=*/true);
  model.generator = affine("generator.proj", c, sizes.targetVocab);
  return model;
}

namespace {
/// Writes the two entries. T target tokens, S source tokens, C channels.
class EntryBuilder {
public:
  EntryBuilder(GraphBuilder &graph, const Sizes &sizes)
      : graph(graph), sizes(sizes) {}
  void encode(const Model &model);
  void decode(const Model &model);

private:
  /// The value's name and the tensors': "q" of weights "wq" and "bq".
  Value linear(StringRef name, Value x, const Affine &affine) {
    Value weight = graph.load(("w" + name).str(), affine.weight);
    Value bias = graph.load(("b" + name).str(), affine.bias);
    return graph.linear(name, x, weight, bias);
  }
  Value norm(StringRef name, Value x, const Affine &affine) {
    Value gamma = graph.load((name + "_a").str(), affine.weight);
    Value beta = graph.load((name + "_b").str(), affine.bias);
    return graph.layerNorm(name, x, gamma, beta, sizes.eps, /*sample=*/true);
  }
  Value embed(const std::string &at, const Embedding &embedding, Value ids);
  /// Of the rows of `n` over those of `source`; the causal one without a mask.
  Value attend(const Projections &weights, Value n, Value source, Value mask);
  Value feedForward(const FeedForward &weights, Value n);

  GraphBuilder &graph;
  const Sizes &sizes;
};
} // namespace

Value EntryBuilder::embed(const std::string &at, const Embedding &embedding,
                          Value ids) {
  graph.enter(at + ".0.lut");
  Value table = graph.load("lut", embedding.table);
  Value tokens = graph.embedding("tok", table, ids);
  Value scaled =
      graph.scale("emb", tokens, std::sqrt(static_cast<double>(sizes.width)));
  graph.enter(at + ".1");
  Value pe = graph.load("pe", embedding.positions);
  Value positions = graph.positions("positions", ids);
  Value position = graph.embedding("pos", pe, positions);
  return graph.add("x", scaled, position);
}

Value EntryBuilder::attend(const Projections &weights, Value n, Value source,
                           Value mask) {
  auto heads = [&](StringRef name, Value x, const Affine &affine) {
    return graph.splitHeads((name + "h").str(), linear(name, x, affine),
                            sizes.heads);
  };
  Value q = heads("q", n, weights.q);
  Value k = heads("k", source, weights.k);
  Value v = heads("v", source, weights.v);
  double headSize = static_cast<double>(sizes.width / sizes.heads);
  double scale = 1 / std::sqrt(headSize);
  Value mixed = mask ? graph.maskedAttention(q, k, v, mask, scale)
                     : graph.attention(q, k, v, scale, /*groups=*/1);
  Value merged = graph.mergeHeads("merged", mixed);
  return linear("attn", merged, weights.out);
}

Value EntryBuilder::feedForward(const FeedForward &weights, Value n) {
  Value inner = graph.relu("act", linear("fc", n, weights.in));
  return linear("down", inner, weights.out);
}

void EntryBuilder::encode(const Model &model) {
  auto arguments =
      graph.beginEntry("encode", {{GraphBuilder::Argument::Ids, "src"},
                                  {GraphBuilder::Argument::Flags, "src_mask"}});
  Value mask = arguments[1];
  Value x = embed("src_embed", model.source, arguments[0]);
  for (auto [i, layer] : llvm::enumerate(model.encoder.layers)) {
    std::string at = fmt::format("encoder.layers.{}.", i);
    graph.enter(at + "self_attn", i);
    Value n = norm("ln1", x, layer.norms[0]);
    x = graph.add("mid", x, attend(layer.self, n, n, mask));
    graph.enter(at + "feed_forward", i);
    n = norm("ln2", x, layer.norms[1]);
    x = graph.add("out", x, feedForward(layer.feed, n));
  }
  graph.enter("encoder.norm");
  graph.endEntry("memory", norm("memory", x, model.encoder.norm));
}

void EntryBuilder::decode(const Model &model) {
  auto arguments = graph.beginEntry(
      "decode", {{GraphBuilder::Argument::Rows, "memory", sizes.width},
                 {GraphBuilder::Argument::Flags, "src_mask"},
                 {GraphBuilder::Argument::Ids, "tgt"},
                 {GraphBuilder::Argument::Ids, "rows"}});
  Value memory = arguments[0], mask = arguments[1];
  Value x = embed("tgt_embed", model.target, arguments[2]);
  for (auto [i, layer] : llvm::enumerate(model.decoder.layers)) {
    std::string at = fmt::format("decoder.layers.{}.", i);
    graph.enter(at + "self_attn", i);
    Value n = norm("ln1", x, layer.norms[0]);
    x = graph.add("seen", x, attend(layer.self, n, n, /*mask=*/{}));
    graph.enter(at + "src_attn", i);
    n = norm("ln2", x, layer.norms[1]);
    // Its values are called as self-attention's, with another first letter.
    graph.enter(at + "src_attn", i, "src_");
    Value attended = attend(layer.source, n, memory, mask);
    graph.enter(at + "src_attn", i);
    x = graph.add("mid", x, attended);
    graph.enter(at + "feed_forward", i);
    n = norm("ln3", x, layer.norms[2]);
    x = graph.add("out", x, feedForward(layer.feed, n));
  }
  graph.enter("decoder.norm");
  Value wanted = graph.selectRows("wanted", x, arguments[3]);
  Value n = norm("n", wanted, model.decoder.norm);
  graph.enter("generator.proj");
  Value logits = linear("logits", n, model.generator);
  graph.endEntry("log_probs", graph.logSoftmax("log_probs", logits));
}

Graph importer::importAnnotatedTransformer(MLIRContext &context,
                                           const Checkpoint &checkpoint,
                                           Weights &weights, ModelInfo &info) {
  auto sizes = readShapes(checkpoint);
  if (!sizes)
    return sizes.error();
  if (auto read = readConfig(checkpoint, *sizes, info); !read)
    return read.error();
  info.layers = sizes->encoderLayers + sizes->decoderLayers;
  info.vocab = sizes->targetVocab;
  info.context = sizes->targetContext;
  Model model = claimWeights(*sizes, weights);
  if (weights.failed())
    return weights.error();
  GraphBuilder graph(context, weights.claimed());
  EntryBuilder builder(graph, *sizes);
  builder.encode(model);
  builder.decode(model);
  return graph.take();
}
