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
    result.factors = {fields.positive("factor")};
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

static bool present(const Reader &config, std::string_view key) {
  const checkpoint::json::Value *value = config.value().find(key);
  return value && !value->isNull();
}

/// rope_theta and partial_rotary_factor of `source`; what is absent stays.
static Expected<void> readBase(const Reader &source, Rope &result,
                               double &partial) {
  Fields fields(source);
  result.base = fields.ropeBaseOr("rope_theta", result.base);
  partial = fields.positiveOr("partial_rotary_factor", partial);
  double rotary = static_cast<double>(result.headSize) * partial;
  fields.require(fields.failed() || partial <= 1, "partial_rotary_factor",
                 fmt::format("expected at most 1, got {}", partial));
  if (fields.failed())
    return fields.error();
  // As transformers rounds it.
  result.rotary = static_cast<int64_t>(rotary);
  fields.require(
      result.rotary >= 2 && result.rotary % 2 == 0,
      present(source, "partial_rotary_factor") ? "partial_rotary_factor"
                                               : "head_dim",
      fmt::format("expected an even number of the {} channels of a head to "
                  "rotate, got {}",
                  result.headSize, result.rotary));
  if (fields.failed())
    return fields.error();
  return {};
}

Expected<Rope> importer::readRope(const Reader &config, int64_t headSize,
                                  double base, double partial) {
  Rope result;
  result.base = base;
  result.headSize = headSize;
  if (auto read = readBase(config, result, partial); !read)
    return read.error();
  for (std::string_view key : {"rope_parameters", "rope_scaling"}) {
    if (!present(config, key))
      continue;
    auto rope = config.child(key);
    if (!rope)
      return rope.error();
    if (auto read = readType(*rope, key, config, result); !read)
      return read.error();
    if (auto read = readBase(*rope, result, partial); !read)
      return read.error();
    break;
  }
  return result;
}
