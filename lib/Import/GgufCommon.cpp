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

void importer::readGgufSizes(Fields<Metadata> &fields, GgufKeys key,
                             LayerSizes &sizes, ModelInfo &info) {
  info.layers = fields.size(key("block_count"));
  info.context = fields.size(key("context_length"));
  sizes.width = fields.size(key("embedding_length"));
  sizes.inner = fields.size(key("feed_forward_length"));
  sizes.heads = fields.size(key("attention.head_count"));
  sizes.kvHeads = fields.sizeOr(key("attention.head_count_kv"), sizes.heads);
  fields.requireMultiple(key("attention.head_count"), sizes.heads,
                         key("attention.head_count_kv"), sizes.kvHeads);
  bool ownHeadSize = fields.has(key("attention.key_length"));
  if (!ownHeadSize)
    fields.requireMultiple(key("embedding_length"), sizes.width,
                           key("attention.head_count"), sizes.heads);
  sizes.headSize =
      fields.sizeOr(key("attention.key_length"), sizes.width / sizes.heads);
  fields.requireRotaryHeadSize(
      key(ownHeadSize ? "attention.key_length" : "embedding_length"),
      sizes.headSize);
  int64_t values = fields.sizeOr(key("attention.value_length"), sizes.headSize);
  fields.require(
      fields.failed() || values == sizes.headSize,
      key("attention.value_length"),
      fmt::format("expected the head size {}, got {}", sizes.headSize, values));
}

void importer::refuseGgufExperts(Fields<Metadata> &fields, GgufKeys key) {
  fields.require(fields.integerOr(key("expert_count"), 0) == 0,
                 key("expert_count"),
                 "expected 0: mixtures of experts are not supported");
}

void importer::refuseGgufRopeScaling(Fields<Metadata> &fields, GgufKeys key) {
  std::string type = fields.stringOr(key("rope.scaling.type"), "none");
  fields.require(type == "none", key("rope.scaling.type"),
                 fmt::format("rotary scaling {} is not supported: expected "
                             "'none'",
                             checkpoint::quote(type)));
  // Written before rope.scaling.type existed.
  double linear = fields.realOr(key("rope.scale_linear"), 1);
  fields.require(linear == 1, key("rope.scale_linear"),
                 fmt::format("expected 1: rotary scaling is not supported, "
                             "got {}",
                             linear));
}

Expected<int64_t> importer::readGgufVocab(const Checkpoint &checkpoint,
                                          GgufKeys key) {
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
  auto stated = metadata.integerOr(key("vocab_size"), rows);
  if (!stated)
    return stated.error();
  if (*stated != rows)
    return metadata.error(key("vocab_size"),
                          fmt::format("expected the {} rows of "
                                      "'token_embd.weight', got {}",
                                      rows, *stated));
  return rows;
}
