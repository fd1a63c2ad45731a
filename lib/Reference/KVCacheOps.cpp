//===- KVCacheOps.cpp - what writes and reads the KV cache ----------------===//

#include "Rules.h"

using namespace mlir;
using namespace gptc::reference;
namespace gpt = gptc::gpt;

Outcome gptc::reference::eval(gpt::KVAppendOp op, const Call &call) {
  const TensorRef &handle = call.ref(op.getCache());
  KVCache &cache = *handle->cache;
  const Tensor &positions = call[op.getPositions()];
  int64_t H = cache.heads(), D = cache.headDim();
  for (auto [part, value] :
       {std::pair(KVCache::Keys, Value(op.getKeys())),
        std::pair(KVCache::Values, Value(op.getValues()))}) {
    const Tensor &x = call[value];
    int64_t T = x.dim(-2);
    if (x.dim(0) != H || x.dim(-1) != D)
      return op.emitError("expected ")
             << H << " heads of size " << D << ", got " << shapeText(x.shape);
    std::vector<double> rows(x.elements());
    for (int64_t h = 0; h < H; ++h)
      for (int64_t t = 0; t < T; ++t)
        std::copy_n(x.data.begin() + (h * T + t) * D, D,
                    rows.begin() + (t * H + h) * D);
    if (auto message =
            cache.append(part, call.layerBase + op.getLayer(), rows,
                         positions.ints, call[op.getSequences()].ints))
      return op.emitError(*message);
  }
  return Results{handle};
}

Outcome gptc::reference::eval(gpt::KVReadOp op, const Call &call) {
  const KVCache &cache = *call[op.getCache()].cache;
  int64_t layer = call.layerBase + op.getLayer(), H = cache.heads(),
          D = cache.headDim();
  std::optional<int64_t> sequence = cache.currentSequence();
  if (!sequence)
    return op.emitError("expected the newest step to have written one "
                        "sequence; run a ragged batch sequence by sequence");
  Results results;
  for (KVCache::Part part : {KVCache::Keys, KVCache::Values}) {
    auto rows = cache.rows(part, layer, *sequence);
    int64_t S = rows.size() / (H * D);
    auto result = allocate(op, {H, S, D});
    if (!result)
      return failure();
    for (int64_t s = 0; s < S; ++s)
      for (int64_t h = 0; h < H; ++h)
        std::copy_n(rows.begin() + (s * H + h) * D, D,
                    result->data.begin() + (h * S + s) * D);
    results.push_back(result);
  }
  return results;
}
