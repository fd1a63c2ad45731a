//===- TensorUses.cpp - What becomes of each tensor -----------------------===//

#include "TensorUses.h"
#include <fmt/format.h>
#include <map>

using namespace gptc;
using namespace gptc::importer;
using checkpoint::Checkpoint;
using checkpoint::TensorInfo;
using llvm::StringRef;

/// Buffers that transformers and nanoGPT save beside the parameters.
static bool isBuffer(StringRef name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with(".attention.bias") ||
         name.ends_with(".attention.masked_bias") ||
         name.ends_with(".rotary_emb.inv_freq");
}

/// The claimed tensor of the same numbers, for the head of a tied model, which
/// some programs store again. Null for other tensors.
static Weight twinOf(const TensorInfo &tensor, const Weights &weights) {
  if (tensor.name == "lm_head.weight" || tensor.name == "embed_out.weight")
    for (Weight weight : weights.claimed())
      if (checkpoint::sameNumbers(tensor, *weight))
        return weight;
  return nullptr;
}

static TensorUse useOf(const TensorInfo &tensor, const Weights &weights) {
  TensorUse use = {TensorUse::Imported, tensor.name,  tensor.shape,
                   tensor.storage,      tensor.bytes, {}};
  if (weights.isClaimed(tensor))
    return use;
  use.kind = TensorUse::Ignored;
  if (const std::string *why = weights.whyUnfit(tensor)) {
    use.kind = TensorUse::Unfit;
    use.why = *why;
  } else if (isBuffer(tensor.name)) {
    use.why = "a buffer";
  } else if (Weight twin = twinOf(tensor, weights)) {
    use.why = "the same as " + twin->name;
  } else {
    use.kind = TensorUse::Unused;
    use.why = "not a tensor of the model";
  }
  return use;
}

std::vector<TensorUse> importer::tensorUses(const Checkpoint &checkpoint,
                                            const Weights &weights) {
  std::vector<TensorUse> uses;
  for (const TensorInfo &tensor : checkpoint.tensors())
    uses.push_back(useOf(tensor, weights));
  for (const Weights::Wanted &wanted : weights.missing())
    uses.push_back({TensorUse::Missing, wanted.name, wanted.shape, {}, 0, {}});
  return uses;
}

static StringRef kindName(TensorUse::Kind kind) {
  switch (kind) {
  case TensorUse::Imported:
    return "imported";
  case TensorUse::Ignored:
    return "ignored";
  case TensorUse::Unused:
    return "unused";
  case TensorUse::Unfit:
    return "unfit";
  case TensorUse::Missing:
    return "missing";
  }
  return "";
}

namespace {
struct Row {
  std::string name, shape, storage, bytes, use;
};
struct Total {
  uint64_t tensors = 0, bytes = 0;
  /// Bytes of each storage.
  std::map<StringRef, uint64_t> storages;
};
} // namespace

static Row rowOf(const TensorUse &use) {
  // As messages have it, but without the quotes.
  std::string name = checkpoint::quote(use.name);
  Row row = {
      name.substr(1, name.size() - 2), checkpoint::shapeText(use.shape),
      use.storage ? std::string(checkpoint::storageName(*use.storage)) : "-",
      use.storage ? std::to_string(use.bytes) : "-", kindName(use.kind).str()};
  if (!use.why.empty())
    row.use += ": " + use.why;
  return row;
}

static void printTotals(const std::vector<TensorUse> &uses,
                        llvm::raw_ostream &os) {
  std::map<TensorUse::Kind, Total> totals;
  for (auto kind : {TensorUse::Imported, TensorUse::Ignored, TensorUse::Unused,
                    TensorUse::Missing})
    totals[kind]; // the others only where there are some
  for (const TensorUse &use : uses) {
    Total &total = totals[use.kind];
    ++total.tensors;
    total.bytes += use.bytes;
    if (use.storage)
      total.storages[checkpoint::storageName(*use.storage)] += use.bytes;
  }
  for (const auto &[kind, total] : totals) {
    os << fmt::format("{:<9}{:>5} tensors {:>15} bytes", kindName(kind).str(),
                      total.tensors, total.bytes);
    for (const auto &[storage, bytes] : total.storages)
      os << fmt::format("{}{} {}",
                        &bytes == &total.storages.begin()->second ? "  " : ", ",
                        storage.str(), bytes);
    os << '\n';
  }
}

void importer::printTensors(const std::vector<TensorUse> &uses,
                            llvm::raw_ostream &os) {
  std::vector<Row> rows = {{"tensor", "shape", "storage", "bytes", "use"}};
  for (const TensorUse &use : uses)
    rows.push_back(rowOf(use));
  size_t name = 0, shape = 0, storage = 0, bytes = 0;
  for (const Row &row : rows) {
    name = std::max(name, row.name.size());
    shape = std::max(shape, row.shape.size());
    storage = std::max(storage, row.storage.size());
    bytes = std::max(bytes, row.bytes.size());
  }
  for (const Row &row : rows)
    os << fmt::format("{:<{}}  {:<{}}  {:<{}}  {:>{}}  {}\n", row.name, name,
                      row.shape, shape, row.storage, storage, row.bytes, bytes,
                      row.use);
  os << '\n';
  printTotals(uses, os);
}
