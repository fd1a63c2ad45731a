//===- ModelInfo.cpp - What every family knows of a model -----------------===//

#include "ModelInfo.h"
#include "Families.h"
#include <fmt/format.h>

using namespace gptc;
using namespace gptc::importer;
using namespace gptc::checkpoint;

static std::optional<Activation> activationNamed(std::string_view name) {
  // gelu_fast writes the same tanh approximation with other constants folded.
  if (name == "gelu_new" || name == "gelu_pytorch_tanh" || name == "gelu_fast")
    return Activation::GeluTanh;
  if (name == "gelu" || name == "gelu_python")
    return Activation::GeluErf;
  if (name == "quick_gelu")
    return Activation::GeluQuick;
  if (name == "silu" || name == "swish")
    return Activation::Silu;
  return std::nullopt;
}

Activation importer::readActivation(Fields<json::Reader> &config,
                                    std::string_view key,
                                    std::string_view absent) {
  std::string name = config.stringOr(key, absent);
  auto activation = activationNamed(name);
  config.require(activation.has_value(), key,
                 "expected one of gelu_new, gelu_pytorch_tanh, gelu_fast, "
                 "gelu, gelu_python, quick_gelu, silu, swish, got " +
                     quote(name));
  return activation.value_or(Activation::GeluTanh);
}

/// The ids of a key that holds an id, a list of ids or null.
static Expected<std::vector<int64_t>> readIds(const json::Reader &config,
                                              std::string_view key) {
  std::vector<int64_t> ids;
  const json::Value *value = config.value().find(key);
  if (!value || value->isNull())
    return ids;
  json::Array single;
  const json::Array *list = value->asArray();
  if (!list) {
    single.push_back(*value);
    list = &single;
  }
  for (const json::Value &entry : *list) {
    const int64_t *id = entry.asInt();
    if (!id)
      return config.error(key, "expected a token id or a list of them, got " +
                                   entry.describe());
    ids.push_back(*id);
  }
  return ids;
}

Expected<void> importer::readSpecialTokens(const json::Reader &config,
                                           ModelInfo &info) {
  auto bos = readIds(config, "bos_token_id");
  if (!bos)
    return bos.error();
  auto eos = readIds(config, "eos_token_id");
  if (!eos)
    return eos.error();
  if (!bos->empty())
    info.bos = bos->front();
  if (!eos->empty()) {
    info.eos = eos->front();
    info.extraEnds.assign(eos->begin() + 1, eos->end());
  }
  return {};
}

Expected<std::vector<bool>>
importer::readSlidingLayers(const json::Reader &config, int64_t layers) {
  std::vector<bool> sliding;
  if (!config.has("layer_types"))
    return sliding;
  auto types = config.array("layer_types");
  if (!types)
    return types.error();
  if (static_cast<int64_t>((*types)->size()) != layers)
    return config.error("layer_types",
                        fmt::format("expected one for each of {} layers, got "
                                    "{}",
                                    layers, (*types)->size()));
  for (const json::Value &type : **types) {
    const std::string *name = type.asString();
    if (!name || (*name != "full_attention" && *name != "sliding_attention"))
      return config.error("layer_types", "expected full_attention or "
                                         "sliding_attention, got " +
                                             type.describe());
    sliding.push_back(*name == "sliding_attention");
  }
  return sliding;
}

Expected<void> importer::refuseQuantization(const json::Reader &config) {
  const json::Value *value = config.value().find("quantization_config");
  if (!value || value->isNull())
    return {};
  const json::Value *method = value->find("quant_method");
  const std::string *name = method ? method->asString() : nullptr;
  return config.error(
      "quantization_config",
      fmt::format("quantisation {} is not supported: expected weights stored "
                  "as f32, f16 or bf16",
                  quote(name ? *name : "of unknown method")));
}

bool importer::hasOtherHead(const Checkpoint &checkpoint,
                            const std::string &head,
                            const std::string &embedding, ModelInfo &info) {
  const TensorInfo *stored = checkpoint.find(head);
  const TensorInfo *tokens = checkpoint.find(embedding);
  if (!stored || !tokens || sameNumbers(*stored, *tokens))
    return false;
  info.notes.push_back(
      fmt::format("the head is said to be tied, but {} has other numbers than "
                  "{}: it is used, as in transformers 5 (4 used the embedding)",
                  quote(head), quote(embedding)));
  return true;
}
