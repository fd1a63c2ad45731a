//===- GgufCommon.cpp - What all families read from GGUF ------------------===//

#include "GgufCommon.h"
#include <charconv>
#include <limits>

using namespace gptc;
using namespace gptc::importer;
using checkpoint::Checkpoint;
using checkpoint::Error;
using checkpoint::Expected;
using checkpoint::TensorInfo;
using checkpoint::gguf::Metadata;

double importer::asWritten(double stored) {
  if (stored > std::numeric_limits<float>::max())
    return stored;
  float single = static_cast<float>(stored);
  if (single != stored)
    return stored;
  // Not strtod, which stops at the point where the locale has a comma.
  std::string text = fmt::format("{}", single);
  std::from_chars(text.data(), text.data() + text.size(), stored);
  return stored;
}

void importer::readGgufTokens(Fields<Metadata> &fields, ModelInfo &info) {
  for (const char *key :
       {"tokenizer.ggml.bos_token_id", "tokenizer.ggml.eos_token_id"})
    if (int64_t id = fields.integerOr(key, -1); id >= 0)
      (key[15] == 'b' ? info.bos : info.eos) = id;
  for (const char *key :
       {"tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"})
    if (int64_t id = fields.integerOr(key, -1); id >= 0 && info.eos != id)
      info.extraEnds.push_back(id);
}

void importer::refuseGgufVariants(Fields<Metadata> &fields,
                                  std::string_view architecture) {
  auto named = [&](const char *key) {
    return fmt::format("{}.{}", architecture, key);
  };
  fields.require(fields.integerOr(named("expert_count"), 0) == 0,
                 named("expert_count"),
                 "expected 0: mixtures of experts are not supported");
  std::string type = fields.stringOr(named("rope.scaling.type"), "none");
  fields.require(type == "none", named("rope.scaling.type"),
                 fmt::format("rotary scaling {} is not supported: expected "
                             "'none'",
                             checkpoint::quote(type)));
  // Written before rope.scaling.type existed.
  double linear = fields.realOr(named("rope.scale_linear"), 1);
  fields.require(linear == 1, named("rope.scale_linear"),
                 fmt::format("expected 1: rotary scaling is not supported, "
                             "got {}",
                             linear));
}

Expected<int64_t> importer::readGgufVocab(const Checkpoint &checkpoint,
                                          std::string_view architecture) {
  const Metadata &metadata = checkpoint.metadata();
  const TensorInfo *table = checkpoint.find("token_embd.weight");
  if (!table)
    return Error{checkpoint.path() + ": tensor 'token_embd.weight' is missing"};
  int64_t rows = table->shape.empty() ? 0 : table->shape[0];
  if (rows < 1 || rows > INT32_MAX)
    return Error{fmt::format("{}: tensor 'token_embd.weight': expected "
                             "[vocabulary, width], got {}",
                             checkpoint.path(),
                             checkpoint::shapeText(table->shape))};
  std::string key = fmt::format("{}.vocab_size", architecture);
  auto stated = metadata.integerOr(key, rows);
  if (!stated)
    return stated.error();
  if (*stated != rows)
    return metadata.error(key, fmt::format("expected the {} rows of "
                                           "'token_embd.weight', got {}",
                                           rows, *stated));
  return rows;
}
