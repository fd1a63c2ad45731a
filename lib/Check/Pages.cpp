//===- Pages.cpp - what a call appends to the KV cache --------------------===//

#include "Pages.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::check;
using reference::KVCache;

AppendedRows Append::fromCache(const KVCache &cache) const {
  AppendedRows result;
  int64_t width = cache.heads() * cache.headDim();
  for (KVCache::Part part : {KVCache::Keys, KVCache::Values})
    for (size_t t = 0; parts[part] && t < positions.size(); ++t) {
      auto row = cache.rows(part, layer, sequences[t])
                     .slice(positions[t] * width, width);
      llvm::append_range(result[part], row);
    }
  return result;
}

std::optional<AppendedRows> Append::fromPages(const void *at,
                                              const Memory &memory,
                                              const gptc_kv_desc &kv) const {
  AppendedRows result;
  int64_t pitch = gptc_kv_value_pitch(kv.head_dim);
  const auto element = static_cast<gptc_dtype>(kv.element);
  gptc_kv_view view;
  if (!memory.read(&view, at, sizeof(view)))
    return std::nullopt;
  // The layer's blocks of one page: neighbours mostly lie in the same one.
  std::vector<char> blocks(kv.heads * kv.block_bytes);
  int32_t held = -1;
  for (size_t t = 0; t < positions.size(); ++t) {
    int64_t slot = positions[t] % kv.page;
    int32_t page;
    if (!memory.read(&page,
                     view.pages + sequences[t] * view.max_pages +
                         positions[t] / kv.page,
                     sizeof(page)))
      return std::nullopt;
    if (page != held &&
        !memory.read(blocks.data(),
                     view.pool + page * kv.layers * kv.heads * kv.block_bytes,
                     blocks.size()))
      return std::nullopt;
    held = page;
    for (int64_t h = 0; h < kv.heads; ++h) {
      // Element i of the block.
      auto at = [&](int64_t i) {
        return numberAt(&blocks[h * kv.block_bytes + i * bytesOf(element)],
                        element);
      };
      const int64_t values = kv.head_dim * kv.page;
      for (int64_t d = 0; d < kv.head_dim; ++d) {
        if (parts[KVCache::Keys])
          result[KVCache::Keys].push_back(at(d * kv.page + slot));
        if (parts[KVCache::Values])
          result[KVCache::Values].push_back(at(values + slot * pitch + d));
      }
    }
  }
  return result;
}

std::optional<std::string> Append::write(const AppendedRows &rows,
                                         KVCache &cache) const {
  for (KVCache::Part part : {KVCache::Keys, KVCache::Values})
    if (parts[part])
      if (auto message =
              cache.append(part, layer, rows[part], positions, sequences))
        return message;
  return std::nullopt;
}

std::optional<Append>
gptc::check::appendOf(gpt::CallOp call, gpt::KernelOp kernel,
                      llvm::ArrayRef<reference::TensorRef> operands) {
  Append append;
  Value cache, positions, sequences;
  if (auto op = dyn_cast<gpt::KVAppendOp>(kernel.kernelOp())) {
    cache = op.getCache();
    positions = op.getPositions();
    sequences = op.getSequences();
    append.parts[0] = append.parts[1] = true;
  } else if (auto gemm = dyn_cast<gpt::FusedGemmOp>(kernel.kernelOp());
             gemm && gemm.getCache()) {
    cache = gemm.getCache();
    positions = gemm.getPositions();
    sequences = gemm.getSequences();
    for (unsigned i = 0; i < gemm.getEpilogues().size(); ++i) {
      append.parts[KVCache::Keys] |= gemm.appendOf(i) == gpt::Append::Keys;
      append.parts[KVCache::Values] |= gemm.appendOf(i) == gpt::Append::Values;
    }
  }
  if (!cache || (!append.parts[0] && !append.parts[1]))
    return std::nullopt;
  // A kernel's arguments are the call's operands.
  auto number = [](Value value) {
    return cast<BlockArgument>(value).getArgNumber();
  };
  append.layer = int64_t(call.getLayer().value_or(0));
  append.cacheOperand = number(cache);
  append.positions = operands[number(positions)]->ints;
  append.sequences = operands[number(sequences)]->ints;
  return append;
}
