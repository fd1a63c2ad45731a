//===- Attention.cpp - masks, softmax, attention --------------------------===//
//
// Sq queries and Sk keys of H heads of size D; `groups` query heads share a KV
// head. Attention is softmax(f(scale * q k^T)) v, row by row, f being what
// Scores says: softcap, alibi, mask, causal with a window.
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

/// Whether a query sees key j: it stands at position `at` of the keys.
static bool seesKey(int64_t j, int64_t at, std::optional<uint64_t> window) {
  return j <= at && (!window || j > at - static_cast<int64_t>(*window));
}

/// The element of `from` that element `index` of `shape` is when the
/// dimensions of `from` are the last ones of `shape`, each equal or 1.
static int64_t broadcastIndex(int64_t index, llvm::ArrayRef<int64_t> shape,
                              llvm::ArrayRef<int64_t> from) {
  int64_t result = 0, stride = 1;
  size_t skip = shape.size() - from.size();
  for (size_t d = shape.size(); d-- > skip;) {
    if (from[d - skip] != 1)
      result += index % shape[d] * stride;
    stride *= from[d - skip];
    index /= shape[d];
  }
  return result;
}

/// Reports unless the dimensions of `from` are the last ones of `shape`, each
/// equal or 1.
static LogicalResult expectBroadcast(Operation *op, const Tensor &from,
                                     llvm::ArrayRef<int64_t> shape,
                                     llvm::StringRef what) {
  bool fits = from.shape.size() <= shape.size();
  for (size_t d = 0; fits && d < from.shape.size(); ++d)
    fits = from.shape[d] == 1 ||
           from.shape[d] == shape[shape.size() - from.shape.size() + d];
  if (fits)
    return success();
  return op->emitError("expected ")
         << what << " of the last dimensions of " << shapeText(shape)
         << ", each equal or 1, got " << shapeText(from.shape);
}

/// `score` under element m of the mask.
static double maskedScore(double score, const Tensor &mask, int64_t m,
                          double fill, Rounding round) {
  if (mask.kind == Tensor::Kind::Float)
    return round(score + mask.data[m]);
  return mask.ints[m] ? score : fill;
}

/// A mask, and which of its elements a score meets.
struct MaskElement {
  const Tensor *mask;
  int64_t at;
};

/// The number after `fill`, rounded to f32 once.
static double fillOf(const std::optional<llvm::APFloat> &fill) {
  return fill ? static_cast<float>(fill->convertToDouble()) : minusInfinity;
}

static double cappedScore(double score, double cap, Rounding round) {
  return round(cap * round(std::tanh(round(score / cap))));
}

Outcome gptc::reference::eval(gpt::BroadcastOp op, const Call &call) {
  const Tensor &x = call[op.getX()];
  std::vector<int64_t> shape;
  for (Value value : op.getLike()) {
    const Tensor &like = call[value];
    if (like.shape.size() > shape.size())
      shape.insert(shape.begin(), like.shape.size() - shape.size(), 1);
    size_t skip = shape.size() - like.shape.size();
    for (auto [d, size] : llvm::enumerate(like.shape))
      if (shape[skip + d] == 1)
        shape[skip + d] = size;
  }
  for (Value value : op.getLike())
    if (failed(expectBroadcast(op, call[value], shape, "like")))
      return failure();
  if (failed(expectBroadcast(op, x, shape, "x")))
    return failure();
  auto result = allocate(op, shape);
  if (!result)
    return failure();
  result->kind = x.kind;
  if (x.kind == Tensor::Kind::Int) {
    result->ints.resize(result->data.size());
    result->data.clear();
  }
  for (int64_t i = 0, e = result->elements(); i < e; ++i) {
    int64_t from = broadcastIndex(i, shape, x.shape);
    if (x.kind == Tensor::Kind::Int)
      result->ints[i] = x.ints[from];
    else
      result->data[i] = x.data[from];
  }
  return Results{result};
}

Outcome gptc::reference::eval(gpt::AlibiOp op, const Call &call) {
  const Tensor &s = call[op.getS()];
  auto result = copyOf(s);
  int64_t H = op.getSlopes().size(), Sq = s.dim(-2), Sk = s.dim(-1);
  if (failed(expectExtent(op, s.dim(-3), H, "heads of the scores")))
    return failure();
  for (int64_t row = 0; row < s.rows(); ++row) {
    double slope = static_cast<float>(op.getSlopes()[row / Sq % H]);
    for (int64_t j = 0; j < Sk; ++j) {
      double &score = result->data[row * Sk + j];
      int64_t distance = j - (row % Sq + Sk - Sq);
      score = call.round(score + call.round(slope * distance));
    }
  }
  return Results{result};
}

Outcome gptc::reference::eval(gpt::CausalMaskOp op, const Call &call) {
  const Tensor &s = call[op.getS()];
  auto result = copyOf(s);
  int64_t Sq = s.dim(-2), Sk = s.dim(-1);
  for (int64_t row = 0; row < s.rows(); ++row)
    for (int64_t j = 0; j < Sk; ++j)
      if (!seesKey(j, row % Sq + Sk - Sq, op.getWindow()))
        result->data[row * Sk + j] = minusInfinity;
  return Results{result};
}

Outcome gptc::reference::eval(gpt::MaskOp op, const Call &call) {
  const Tensor &s = call[op.getS()], &mask = call[op.getMask()];
  if (failed(expectBroadcast(op, mask, s.shape, "a mask")))
    return failure();
  auto result = copyOf(s);
  for (int64_t i = 0; i < s.elements(); ++i)
    result->data[i] = maskedScore(result->data[i], mask,
                                  broadcastIndex(i, s.shape, mask.shape),
                                  fillOf(op.getFill()), call.round);
  return Results{result};
}

Outcome gptc::reference::eval(gpt::SoftmaxOp op, const Call &call) {
  auto result = copyOf(call[op.getX()]);
  int64_t columns = result->columns();
  for (int64_t row = 0; row < result->rows(); ++row)
    softmaxRow({result->data.data() + row * columns, size_t(columns)},
               call.round);
  return Results{result};
}

/// In place. -inf where softmaxRow gives 0 of -inf; NaN stays NaN.
static void logSoftmaxRow(llvm::MutableArrayRef<double> row, Rounding round) {
  double largest = minusInfinity;
  for (double x : row)
    largest = std::isnan(x) ? x : std::fmax(largest, x);
  if (largest == minusInfinity &&
      llvm::none_of(row, [](double x) { return std::isnan(x); }))
    return;
  double sum = 0.0;
  for (double &x : row) {
    x = round(x - largest);
    sum = round(sum + round(std::exp(x)));
  }
  double logarithm = round(std::log(sum));
  for (double &x : row)
    x = round(x - logarithm);
}

Outcome gptc::reference::eval(gpt::LogSoftmaxOp op, const Call &call) {
  auto result = copyOf(call[op.getX()]);
  int64_t columns = result->columns();
  for (int64_t row = 0; row < result->rows(); ++row)
    logSoftmaxRow({result->data.data() + row * columns, size_t(columns)},
                  call.round);
  return Results{result};
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

namespace {
/// What becomes of one query's scores, in this order; `slope` is its head's,
/// `at` its position among the keys.
struct Scores {
  Scores(gpt::FlashAttentionOp op, Rounding round)
      : scale(op.getScale().convertToDouble()), causal(op.getCausal()),
        window(op.getWindow()), fill(fillOf(op.getFill())), round(round) {
    if (op.getSoftcap())
      cap = op.getSoftcap()->convertToDouble();
    if (op.getAlibi())
      slopes = *op.getAlibi();
  }

  double operator()(double product, int64_t h, int64_t j, int64_t at,
                    llvm::ArrayRef<MaskElement> masks) const {
    double score = round(scale * product);
    if (cap)
      score = cappedScore(score, *cap, round);
    if (!slopes.empty()) {
      double slope = static_cast<float>(slopes[h % slopes.size()]);
      score = round(score + round(slope * (j - at)));
    }
    for (auto [mask, m] : masks)
      score = maskedScore(score, *mask, m, fill, round);
    return causal && !seesKey(j, at, window) ? minusInfinity : score;
  }

  double scale;
  bool causal;
  std::optional<uint64_t> window;
  double fill;
  Rounding round;
  std::optional<double> cap;
  llvm::ArrayRef<double> slopes;
};
} // namespace

/// One query `q` [D] against `count` keys: key and value j of its head lie at
/// k + j * stride and v + j * stride; `score` makes a score of a product and
/// j. Adds to `out` [D], which is 0 at first and stays so when nothing is
/// visible.
static void attend(const double *q, const double *k, const double *v,
                   int64_t count, int64_t stride, int64_t D,
                   llvm::function_ref<double(double, int64_t)> score,
                   Rounding round, double *out) {
  std::vector<double> scores(std::max<int64_t>(count, 0));
  for (int64_t j = 0; j < count; ++j) {
    double product = 0.0;
    for (int64_t d = 0; d < D; ++d)
      product = round(product + round(round.input(q[d]) *
                                      round.cachedInput(k[j * stride + d])));
    scores[j] = score(product, j);
  }
  softmaxRow(scores, round);
  for (int64_t j = 0; j < count; ++j)
    for (int64_t d = 0; scores[j] != 0.0 && d < D; ++d)
      out[d] = round(out[d] + round(round.input(scores[j]) *
                                    round.cachedInput(v[j * stride + d])));
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
  Scores scores(op, call.round);
  std::vector<int64_t> shape = q.shape; // of the scores
  shape.back() = Sk;
  llvm::SmallVector<MaskElement> masks;
  for (Value value : op.getMasks()) {
    masks.push_back({&call[value], 0});
    if (failed(expectBroadcast(op, call[value], shape, "a mask")))
      return failure();
  }
  if (!scores.slopes.empty() &&
      failed(expectExtent(op, q.dim(-3), scores.slopes.size(), "heads of q")))
    return failure();
  auto result = allocate(op, q.shape);
  if (!result)
    return failure();
  for (int64_t h = 0; h < heads; ++h)
    for (int64_t i = 0; i < Sq; ++i) {
      int64_t row = h * Sq + i, head = h / groups * Sk * D;
      auto score = [&](double product, int64_t j) {
        for (auto &[mask, m] : masks)
          m = broadcastIndex(row * Sk + j, shape, mask->shape);
        return scores(product, h, j, i + Sk - Sq, masks);
      };
      attend(q.data.data() + row * D, k.data.data() + head,
             v.data.data() + head, Sk, D, D, score, call.round,
             result->data.data() + row * D);
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
  Scores scores(op, call.round);
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
      auto score = [&](double product, int64_t j) {
        return scores(product, h, j, position, {});
      };
      attend(q.data.data() + row, keys.data() + head, values.data() + head,
             position + 1, stride, D, score, call.round,
             result->data.data() + row);
    }
  }
  return Results{result};
}

Outcome gptc::reference::eval(gpt::FlashAttentionOp op, const Call &call) {
  return op.getCache() ? cachedAttention(op, call) : denseAttention(op, call);
}
