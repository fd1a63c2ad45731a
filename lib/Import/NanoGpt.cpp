//===- NanoGpt.cpp - nanoGPT and minGPT from PyTorch checkpoints ----------===//
//
// Both write GPT-2's names with Linear weights [out, in] and layer norms of
// epsilon 1e-5. nanoGPT's ckpt.pt holds its `model_args`; minGPT writes the
// state dict alone, and a config.json beside it with its settings under
// `model`, of which only the number of heads does not follow from shapes.
//
//            head              GELU   biases
//   nanoGPT  the embedding     erf    all or none
//   minGPT   a matrix of its   tanh   all
//
// A state dict alone is nanoGPT's where the head is the embedding. The GELU can
// be said in the config.json (`activation_function`), since nanoGPT's of before
// 2023 was the tanh form and the file is the same.
//
// Source: model.py of either.
//
//===----------------------------------------------------------------------===//

#include "Fields.h"
#include "Gpt2Graph.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::importer;
using checkpoint::Checkpoint;
using checkpoint::Error;
using checkpoint::Expected;
using checkpoint::json::Reader;

static constexpr const char *tokensName = "transformer.wte.weight";

/// The heads of minGPT's named sizes, which it fills in after writing its
/// config.json.
static std::optional<int64_t> headsNamed(std::string_view modelType) {
  static constexpr std::pair<std::string_view, int64_t> sizes[] = {
      {"openai-gpt", 12}, {"gpt2", 12},     {"gpt2-medium", 16},
      {"gpt2-large", 20}, {"gpt2-xl", 25},  {"gopher-44m", 16},
      {"gpt-mini", 6},    {"gpt-micro", 4}, {"gpt-nano", 3},
  };
  for (auto [name, heads] : sizes)
    if (name == modelType)
      return heads;
  return std::nullopt;
}

/// From the settings beside a state dict, which may lie under `model`.
static Expected<int64_t> readHeads(const Checkpoint &checkpoint) {
  Error missing{fmt::format(
      "{}: a state dict does not say how many heads the model has: expected a "
      "config.json beside it with \"n_head\"",
      checkpoint.path())};
  if (checkpoint.configPath().empty())
    return missing;
  Reader settings = checkpoint.configReader();
  if (settings.has("model")) {
    auto inner = settings.child("model");
    if (!inner)
      return inner.error();
    settings = *inner;
  }
  if (settings.has("n_head"))
    return settings.integer("n_head");
  auto type = settings.stringOr("model_type", "");
  if (!type)
    return type.error();
  if (auto heads = headsNamed(*type))
    return *heads;
  return settings.error("n_head", "expected an integer, got no such key");
}

/// Rows and columns of a matrix, of which a shape is read.
static Expected<std::pair<int64_t, int64_t>>
matrixShape(const Checkpoint &checkpoint, const std::string &name) {
  Weight tensor = checkpoint.find(name);
  if (!tensor)
    return Error{fmt::format("{}: tensor {} is missing: expected the names of "
                             "nanoGPT or minGPT, or a config.json with "
                             "\"model_type\" beside the file",
                             checkpoint.path(), checkpoint::quote(name))};
  auto small = [](int64_t size) { return size >= 1 && size <= INT32_MAX; };
  if (tensor->shape.size() != 2 || !small(tensor->shape[0]) ||
      !small(tensor->shape[1]))
    return Error{fmt::format("{}: tensor {}: expected [rows, channels], got {}",
                             checkpoint.path(), checkpoint::quote(name),
                             checkpoint::shapeText(tensor->shape))};
  return std::pair(tensor->shape[0], tensor->shape[1]);
}

/// Whether the head is the embedding: the same storage, or the same numbers.
static bool isTied(const Checkpoint &checkpoint) {
  Weight head = checkpoint.find("lm_head.weight");
  Weight tokens = checkpoint.find(tokensName);
  return !head || !tokens || checkpoint::sameNumbers(*head, *tokens);
}

/// A state dict alone: sizes follow from shapes, layers from names.
static Expected<Gpt2Config> readStateDict(const Checkpoint &checkpoint,
                                          ModelInfo &info) {
  auto tokens = matrixShape(checkpoint, tokensName);
  if (!tokens)
    return tokens.error();
  auto positions = matrixShape(checkpoint, "transformer.wpe.weight");
  if (!positions)
    return positions.error();
  auto heads = readHeads(checkpoint);
  if (!heads)
    return heads.error();
  info.vocab = tokens->first;
  info.context = positions->first;
  while (
      checkpoint.find(fmt::format("transformer.h.{}.ln_1.weight", info.layers)))
    ++info.layers;
  if (info.layers == 0)
    info.layers = 1; // whose first tensor is then missing
  Gpt2Config config;
  config.width = tokens->second;
  config.heads = *heads;
  if (config.heads < 1 || config.width % config.heads != 0)
    return Error{fmt::format("{}: key 'n_head': expected a divisor of the "
                             "{} channels of {}, got {}",
                             checkpoint.configPath(), config.width,
                             checkpoint::quote(tokensName), config.heads)};
  config.bias = checkpoint.find("transformer.ln_f.bias") != nullptr;
  config.tied = isTied(checkpoint);
  config.activation = config.tied ? Activation::GeluErf : Activation::GeluTanh;
  return config;
}

/// nanoGPT's ckpt.pt.
static Expected<Gpt2Config> readModelArgs(const Checkpoint &checkpoint,
                                          ModelInfo &info) {
  auto args = checkpoint.configReader().child("model_args");
  if (!args)
    return args.error();
  Fields fields(*args);
  info.layers = fields.size("n_layer");
  info.vocab = fields.size("vocab_size");
  info.context = fields.size("block_size");
  Gpt2Config config;
  config.width = fields.size("n_embd");
  config.heads = fields.size("n_head");
  fields.requireMultiple("n_embd", config.width, "n_head", config.heads);
  config.bias = fields.booleanOr("bias", true);
  config.activation = Activation::GeluErf;
  if (fields.failed())
    return fields.error();
  config.tied = isTied(checkpoint);
  return config;
}

Graph importer::importNanoGpt(MLIRContext &context,
                              const Checkpoint &checkpoint, Weights &weights,
                              ModelInfo &info) {
  auto json = checkpoint.configReader();
  bool whole = json.has("model_args");
  auto config =
      whole ? readModelArgs(checkpoint, info) : readStateDict(checkpoint, info);
  if (!config)
    return config.error();
  if (json.has("activation_function")) {
    Fields fields(json);
    config->activation = readActivation(fields, "activation_function", "");
    if (fields.failed())
      return fields.error();
  } else if (!whole) {
    info.notes.push_back(fmt::format(
        "the file does not say which GELU the model has: taken for {}; a "
        "config.json beside it with \"activation_function\" says it",
        config->tied ? "nanoGPT's, the exact one (\"gelu\")"
                     : "minGPT's, the tanh form (\"gelu_new\"), as the head "
                       "is not the embedding"));
  }
  config->inner = 4 * config->width;
  Gpt2Model model = claimGpt2(*config, info, "transformer.", weights);
  if (weights.failed())
    return weights.error();
  return buildGpt2(context, model, weights, info.vocab);
}
