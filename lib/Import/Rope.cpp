//===- Rope.cpp - Rotary embeddings of config.json ------------------------===//

#include "Rope.h"
#include "Fields.h"

using namespace gptc;
using namespace gptc::importer;
using checkpoint::Expected;
using checkpoint::json::Reader;

gpt::RopeAttr Rope::attribute(mlir::MLIRContext &context) const {
  mlir::Attribute scaling;
  if (llama3)
    scaling = gpt::RopeScalingAttr::get(&context, llama3->factor, llama3->low,
                                        llama3->high, llama3->original);
  if (!factors.empty())
    scaling = gpt::RopeFactorsAttr::get(
        &context,
        llvm::SmallVector<gpt::ExactDouble>(factors.begin(), factors.end()));
  return gpt::RopeAttr::get(&context, base, pairs, headSize, scaling, rotary);
}

/// Of `rope`, the object at `key` that names the type.
static Expected<void> readType(const Reader &rope, std::string_view key,
                               const Reader &config, Rope &result) {
  Fields fields(rope);
  // Written `type` before transformers 4.43.
  std::string type = fields.stringOr("rope_type", fields.stringOr("type", ""));
  if (fields.failed())
    return fields.error();
  if (type.empty()) {
    // {"full_attention": {...}, "sliding_attention": {...}}
    for (const checkpoint::json::Member &member : *rope.value().asObject())
      if (member.value.asObject())
        return rope.error(member.key, "rotary parameters that differ from "
                                      "layer to layer are not supported");
    if (key == "rope_parameters")
      return {};
    return config.error(key, "expected a 'rope_type', got none");
  }
  if (type == "default")
    return {};
  if (type == "linear") {
    result.factors = {fields.ropeFactor("factor")};
  } else if (type == "llama3") {
    Rope::Llama3 scaling;
    scaling.factor = fields.positive("factor");
    scaling.low = fields.positive("low_freq_factor");
    scaling.high = fields.positive("high_freq_factor");
    scaling.original = fields.size("original_max_position_embeddings");
    fields.require(
        scaling.high > scaling.low || fields.failed(), "high_freq_factor",
        fmt::format("expected more than 'low_freq_factor' ({}), got {}",
                    scaling.low, scaling.high));
    fields.require(scaling.factor >= 1, "factor",
                   fmt::format("expected at least 1, got {}", scaling.factor));
    result.llama3 = scaling;
  } else {
    return config.error(
        key, fmt::format("rotary type {} is not supported: expected default, "
                         "linear or llama3",
                         checkpoint::quote(type)));
  }
  if (fields.failed())
    return fields.error();
  return {};
}

namespace {
/// The share of a head that rotates, and the key that says so.
struct Share {
  double number;
  const Reader *source;
  const char *key;
};
} // namespace

/// What `source` says of the base and the share; what is absent stays.
static Expected<void> readNumbers(const Reader &source, const char *baseKey,
                                  const char *shareKey, Rope &result,
                                  Share &share) {
  Fields fields(source);
  result.base = fields.ropeBaseOr(baseKey, result.base);
  double number = fields.positiveOr(shareKey, share.number);
  fields.require(fields.failed() || number <= 1, shareKey,
                 fmt::format("expected at most 1, got {}", number));
  if (fields.failed())
    return fields.error();
  if (source.has(shareKey))
    share = {number, &source, shareKey};
  return {};
}

Expected<Rope> importer::readRope(const Reader &config, int64_t headSize,
                                  const RopeKeys &keys) {
  Rope result;
  result.base = keys.absentBase;
  result.headSize = headSize;
  Share share{keys.absentPartial, &config, keys.partial};
  if (auto read = readNumbers(config, keys.base, keys.partial, result, share);
      !read)
    return read.error();
  std::optional<Reader> nested;
  for (std::string_view key : {"rope_parameters", "rope_scaling"}) {
    if (!config.has(key))
      continue;
    auto rope = config.child(key);
    if (!rope)
      return rope.error();
    nested.emplace(*rope);
    if (auto read = readType(*nested, key, config, result); !read)
      return read.error();
    if (auto read = readNumbers(*nested, "rope_theta", "partial_rotary_factor",
                                result, share);
        !read)
      return read.error();
    break;
  }
  // As transformers rounds it.
  result.rotary =
      static_cast<int64_t>(static_cast<double>(headSize) * share.number);
  if (result.rotary < 2 || result.rotary % 2)
    return share.source->error(
        share.key, fmt::format("expected an even number of the {} channels of "
                               "a head to rotate, got {}",
                               headSize, result.rotary));
  return result;
}
