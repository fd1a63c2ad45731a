//===- Attention.cpp - masks, softmax, attention, the KV cache ------------===//
//
// Sq queries and Sk keys of H heads of size D; `groups` query heads share a KV
// head. Attention is softmax(scale * q k^T, masked) v, row by row.
//
//===----------------------------------------------------------------------===//

#include "Rules.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace gptc::reference;
namespace gpt = gptc::gpt;

static constexpr double minusInfinity =
    -std::numeric_limits<double>::infinity();

/// In place. A row with every score -inf becomes 0; NaN stays NaN.
static void softmaxRow(llvm::MutableArrayRef<double> row, Rounding round) {
  double largest = minusInfinity;
  for (double score : row)
    largest = std::isnan(score) ? score : std::fmax(largest, score);
  if (largest == minusInfinity &&
      llvm::none_of(row, [](double score) { return std::isnan(score); })) {
    llvm::fill(row, 0.0);
    return;
  }
  double sum = 0.0;
  for (double &score : row)
    sum = round(sum + (score = round(std::exp(round(score - largest)))));
  for (double &score : row)
    score = round(score / sum);
}

Outcome gptc::reference::eval(gpt::CausalMaskOp op, const Call &call) {
  const Tensor &s = call[op.getS()];
  auto result = std::make_shared<Tensor>(s);
  int64_t Sq = s.dim(-2), Sk = s.dim(-1);
  for (int64_t row = 0; row < s.rows(); ++row)
    for (int64_t j = 0; j < Sk; ++j)
      if (j > row % Sq + Sk - Sq)
        result->data[row * Sk + j] = minusInfinity;
  return Results{result};
}

Outcome gptc::reference::eval(gpt::MaskOp op, const Call &call) {
  const Tensor &s = call[op.getS()], &mask = call[op.getMask()];
  // The mask's dimensions are the last ones of s, so it repeats.
  if (mask.rank() > s.rank() ||
      !std::equal(mask.shape.rbegin(), mask.shape.rend(), s.shape.rbegin()))
    return op.emitError("expected a mask of the last dimensions of ")
           << shapeText(s.shape) << ", got " << shapeText(mask.shape);
  auto result = std::make_shared<Tensor>(s);
  for (int64_t i = 0; i < s.elements(); ++i) {
    int64_t m = i % mask.elements();
    if (mask.kind == Tensor::Kind::Float)
      result->data[i] = call.round(result->data[i] + mask.data[m]);
    else if (!mask.ints[m])
      result->data[i] = minusInfinity;
  }
  return Results{result};
}

Outcome gptc::reference::eval(gpt::SoftmaxOp op, const Call &call) {
  auto result = std::make_shared<Tensor>(call[op.getX()]);
  int64_t columns = result->columns();
  for (int64_t row = 0; row < result->rows(); ++row)
    softmaxRow({result->data.data() + row * columns, size_t(columns)},
               call.round);
  return Results{result};
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

/// One query `q` [D] against the first `visible` keys: key and value j of its
/// head lie at k + j * stride and v + j * stride. Adds to `out` [D], which is
/// 0 at first and stays so when nothing is visible.
static void attend(const double *q, const double *k, const double *v,
                   int64_t visible, int64_t stride, int64_t D, double scale,
                   Rounding round, double *out) {
  std::vector<double> scores(std::max<int64_t>(visible, 0));
  for (int64_t j = 0; j < visible; ++j) {
    double product = 0.0;
    for (int64_t d = 0; d < D; ++d)
      product = round(product + round(q[d] * k[j * stride + d]));
    scores[j] = round(scale * product);
  }
  softmaxRow(scores, round);
  for (int64_t j = 0; j < visible; ++j)
    for (int64_t d = 0; d < D; ++d)
      out[d] = round(out[d] + round(scores[j] * v[j * stride + d]));
}

static Outcome denseAttention(gpt::FlashAttentionOp op, const Call &call) {
  const Tensor &q = call[op.getQ()], &k = call[op.getK()], &v = call[op.getV()];
  int64_t groups = op.getGroups(), Sq = q.dim(-2), Sk = k.dim(-2);
  int64_t D = q.dim(-1), heads = 1, kvHeads = 1;
  for (int64_t i = 0; i < q.rank() - 2; ++i)
    heads *= q.dim(i);
  for (int64_t i = 0; i < k.rank() - 2; ++i)
    kvHeads *= k.dim(i);
  if (k.shape != v.shape || k.dim(-1) != D || groups < 1 ||
      kvHeads * groups != heads)
    return op.emitError("expected k and v of one shape with a head for every ")
           << groups << " of q, got " << shapeText(q.shape) << ", "
           << shapeText(k.shape) << " and " << shapeText(v.shape);
  auto result = allocate(op, q.shape);
  if (!result)
    return failure();
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t i = 0; i < Sq; ++i) {
      int64_t visible = op.getCausal() ? std::min(Sk, i + Sk - Sq + 1) : Sk;
      int64_t row = (h * Sq + i) * D, head = h / groups * Sk * D;
      attend(q.data.data() + row, k.data.data() + head, v.data.data() + head,
             visible, D, D, op.getScale().convertToDouble(), call.round,
             result->data.data() + row);
    }
  return Results{result};
}

static Outcome cachedAttention(gpt::FlashAttentionOp op, const Call &call) {
  const Tensor &q = call[op.getQ()], &positions = call[op.getPositions()],
               &sequences = call[op.getSequences()];
  const KVCache &cache = *call[op.getCache()].cache;
  int64_t groups = op.getGroups(), D = cache.headDim(), T = q.dim(0);
  int64_t heads = cache.heads() * groups,
          layer = call.layerBase + op.getLayer().value_or(0);
  if (failed(expectExtent(op, q.columns(), heads * D, "columns of q")) ||
      failed(expectExtent(op, positions.elements(), T, "positions")) ||
      failed(expectExtent(op, sequences.elements(), T, "sequence ids")))
    return failure();
  auto result = allocate(op, q.shape);
  if (!result)
    return failure();
  int64_t stride = cache.heads() * D;
  for (int64_t t = 0; t < T; ++t) {
    int64_t sequence = sequences.ints[t], position = positions.ints[t];
    int64_t held = std::min(cache.length(KVCache::Keys, layer, sequence),
                            cache.length(KVCache::Values, layer, sequence));
    if (position < 0 || position >= held)
      return op.emitError("expected a position of sequence ")
             << sequence << " that layer " << layer << " of the cache holds ("
             << held << " of them), got " << position << " at row " << t;
    auto keys = cache.rows(KVCache::Keys, layer, sequence);
    auto values = cache.rows(KVCache::Values, layer, sequence);
    for (int64_t h = 0; h < heads; ++h) {
      int64_t head = h / groups * D, row = (t * heads + h) * D;
      attend(q.data.data() + row, keys.data() + head, values.data() + head,
             position + 1, stride, D, op.getScale().convertToDouble(),
             call.round, result->data.data() + row);
    }
  }
  return Results{result};
}

Outcome gptc::reference::eval(gpt::FlashAttentionOp op, const Call &call) {
  return op.getCache() ? cachedAttention(op, call) : denseAttention(op, call);
}

//===----------------------------------------------------------------------===//
// KV cache
//===----------------------------------------------------------------------===//

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
