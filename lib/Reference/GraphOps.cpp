//===- GraphOps.cpp - tokens, linear algebra and layout of heads ----------===//
//
// T tokens, C and K features, N output features, H heads, D head size.
//
//===----------------------------------------------------------------------===//

#include "Rules.h"
#include <cmath>

using namespace mlir;
using namespace gptc::reference;
namespace gpt = gptc::gpt;

/// result[i, :] = table[ids[i], :]; `what` names an id in the error.
static Outcome gatherRows(Operation *op, const Tensor &table, const Tensor &ids,
                          llvm::StringRef what) {
  int64_t width = table.columns(), rows = table.rows();
  auto result = allocate(op, {ids.elements(), width});
  if (!result)
    return failure();
  for (int64_t i = 0; i < ids.elements(); ++i) {
    int64_t id = ids.ints[i];
    if (id < 0 || id >= rows)
      return op->emitError("expected ") << what << " from 0 to " << rows - 1
                                        << " at index " << i << ", got " << id;
    std::copy_n(table.data.begin() + id * width, width,
                result->data.begin() + i * width);
  }
  return Results{result};
}

Outcome gptc::reference::eval(gpt::EmbeddingOp op, const Call &call) {
  Outcome rows = gatherRows(op, call[op.getTable()], call[op.getIds()], "an id");
  if (failed(rows) || call.round.precision <= Precision::Single)
    return rows;
  // The table may be a weight of a GEMM, which lies once.
  auto result = copyOf(*rows->front());
  if (call.round.precision == Precision::Int8)
    roundToBytes(result->data, result->rows(), result->columns(), 1,
                 result->columns());
  for (double &value : result->data)
    value = call.round.input(value);
  return Results{result};
}

Outcome gptc::reference::eval(gpt::SelectRowsOp op, const Call &call) {
  return gatherRows(op, call[op.getX()], call[op.getRows()], "a row");
}

Outcome gptc::reference::eval(gpt::PositionsOp op, const Call &call) {
  int64_t count = call[op.getIds()].elements();
  std::vector<int64_t> positions(count);
  for (int64_t i = 0; i < count; ++i)
    positions[i] = i;
  return Results{makeInts({count}, std::move(positions))};
}

Outcome gptc::reference::eval(gpt::DropoutOp op, const Call &call) {
  return Results{call.ref(op.getX())};
}

Outcome gptc::reference::eval(gpt::ScaleOp op, const Call &call) {
  auto result = copyOf(call[op.getX()]);
  // The factor is one f32 constant by the op's definition.
  double factor = static_cast<float>(op.getFactor().convertToDouble());
  for (double &value : result->data)
    value = call.round(value * factor);
  return Results{result};
}

//===----------------------------------------------------------------------===//
// Linear algebra
//===----------------------------------------------------------------------===//

static double dot(const double *a, const double *b, int64_t count,
                  Rounding round) {
  double sum = 0.0;
  for (int64_t i = 0; i < count; ++i)
    sum = round(sum + round(a[i] * b[i]));
  return sum;
}

std::shared_ptr<Tensor>
gptc::reference::affine(const Call &call, const Tensor &x, const Tensor &weight,
                        bool inOut, const Tensor *bias) {
  Operation *op = call.op;
  Rounding round = call.round;
  int64_t K = x.columns(), T = x.rows(), N = weight.dim(inOut ? 1 : 0);
  std::vector<int64_t> shape = x.shape;
  shape.back() = N;
  if (failed(expectExtent(op, weight.dim(inOut ? 0 : 1), K,
                          "input features of the weight")) ||
      (bias &&
       failed(expectExtent(op, bias->elements(), N, "elements of the bias"))))
    return nullptr;
  auto result = allocate(op, shape);
  if (!result)
    return nullptr;
  std::vector<double> roomX, roomW;
  const double *in = round.inputs(x.data, roomX).data();
  const double *w = round.inputs(weight.data, roomW).data();
  if (round.ofBytes()) {
    const int64_t run = round.precision == Precision::Int8Blocks ? 32 : K;
    roomX.assign(x.data.begin(), x.data.end());
    roundToBytes(roomX, T * K / run, run, 1, run);
    in = roomX.data();
  }
  if (round.precision == Precision::Int8) {
    roomW.assign(weight.data.begin(), weight.data.end());
    inOut ? roundToBytes(roomW, N, K, N, 1) : roundToBytes(roomW, N, K, 1, K);
    w = roomW.data();
  }
  double *y = result->data.data();
  if (inOut) {
    for (int64_t k = 0; k < K; ++k)
      for (int64_t t = 0; t < T; ++t)
        for (int64_t n = 0; n < N; ++n)
          y[t * N + n] =
              round(y[t * N + n] + round(in[t * K + k] * w[k * N + n]));
  } else {
    for (int64_t n = 0; n < N; ++n)
      for (int64_t t = 0; t < T; ++t)
        y[t * N + n] = dot(in + t * K, w + n * K, K, round);
  }
  if (bias)
    for (int64_t i = 0; i < T * N; ++i)
      y[i] = round(y[i] + bias->data[i % N]);
  return result;
}

Outcome gptc::reference::eval(gpt::LinearOp op, const Call &call) {
  const Tensor *bias = op.getBias() ? &call[op.getBias()] : nullptr;
  auto result =
      affine(call, call[op.getX()], call[op.getWeight()], op.getInOut(), bias);
  if (!result)
    return failure();
  return Results{result};
}

Outcome gptc::reference::eval(gpt::MatmulOp op, const Call &call) {
  const Tensor &a = call[op.getA()], &b = call[op.getB()];
  bool transposed = op.getTransposeB();
  int64_t groups = op.getGroups(), M = a.dim(-2), K = a.dim(-1);
  int64_t N = b.dim(transposed ? -2 : -1);
  if (failed(expectExtent(op, b.dim(transposed ? -1 : -2), K,
                          "elements in the summed dimension of b")))
    return failure();
  // Head h of every batch meets head h / groups of that batch. The heads are
  // the innermost of the leading dimensions, so dividing the flattened index
  // divides the head.
  int64_t heads = 1, headsOfB = 1;
  for (int64_t i = 0; i < a.rank() - 2; ++i)
    heads *= a.dim(i);
  for (int64_t i = 0; i < b.rank() - 2; ++i)
    headsOfB *= b.dim(i);
  if (groups < 1 || headsOfB * groups != heads)
    return op.emitError("expected heads of a to be groups times those of b, "
                        "got ")
           << heads << ", " << groups << " and " << headsOfB;
  std::vector<int64_t> shape = a.shape;
  shape.back() = N;
  auto result = allocate(op, shape);
  if (!result)
    return failure();
  std::vector<double> roomA, roomB;
  llvm::ArrayRef<double> left = call.round.inputs(a.data, roomA);
  llvm::ArrayRef<double> right = call.round.cachedInputs(b.data, roomB);
  for (int64_t h = 0; h < heads; ++h) {
    const double *matrix = right.data() + h / groups * K * N;
    for (int64_t i = 0; i < M; ++i) {
      const double *row = left.data() + (h * M + i) * K;
      double *out = result->data.data() + (h * M + i) * N;
      if (transposed)
        for (int64_t j = 0; j < N; ++j)
          out[j] = dot(row, matrix + j * K, K, call.round);
      else
        for (int64_t k = 0; k < K; ++k)
          for (int64_t j = 0; j < N; ++j)
            out[j] =
                call.round(out[j] + call.round(row[k] * matrix[k * N + j]));
    }
  }
  return Results{result};
}

//===----------------------------------------------------------------------===//
// Layout
//===----------------------------------------------------------------------===//

Outcome gptc::reference::eval(gpt::SplitOp op, const Call &call) {
  const Tensor &x = call[op.getX()];
  int64_t total = x.columns(), begin = 0;
  Results results;
  for (Value part : op.getParts()) {
    int64_t width = cast<RankedTensorType>(part.getType()).getShape().back();
    if (width < 0 || begin + width > total)
      return op.emitError("expected parts within the last dimension of ")
             << total << ", got one of " << width << " at " << begin;
    std::vector<int64_t> shape = x.shape;
    shape.back() = width;
    auto result = allocate(op, shape);
    if (!result)
      return failure();
    for (int64_t row = 0; row < x.rows(); ++row)
      std::copy_n(x.data.begin() + row * total + begin, width,
                  result->data.begin() + row * width);
    results.push_back(result);
    begin += width;
  }
  return results;
}

/// Moves between [..., T, H * D] and [..., H, T, D]; `toHeads` says which way.
static void moveHeads(const Tensor &from, Tensor &to, bool toHeads, int64_t H,
                      int64_t T, int64_t D) {
  int64_t batches = H * T * D == 0 ? 0 : from.elements() / (H * T * D);
  for (int64_t b = 0; b < batches; ++b)
    for (int64_t h = 0; h < H; ++h)
      for (int64_t t = 0; t < T; ++t) {
        int64_t split = ((b * H + h) * T + t) * D;
        int64_t merged = ((b * T + t) * H + h) * D;
        std::copy_n(from.data.begin() + (toHeads ? merged : split), D,
                    to.data.begin() + (toHeads ? split : merged));
      }
}

Outcome gptc::reference::eval(gpt::SplitHeadsOp op, const Call &call) {
  const Tensor &x = call[op.getX()];
  auto type = cast<RankedTensorType>(op.getResult().getType());
  int64_t H = type.getDimSize(type.getRank() - 3);
  int64_t D = type.getDimSize(type.getRank() - 1);
  if (H <= 0 || D <= 0 || H * D != x.columns())
    return op.emitError("expected static heads and head size with product ")
           << x.columns() << ", got " << H << " and " << D;
  std::vector<int64_t> shape(x.shape.begin(), x.shape.end() - 2);
  shape.insert(shape.end(), {H, x.dim(-2), D});
  auto result = allocate(op, shape);
  if (!result)
    return failure();
  moveHeads(x, *result, /*toHeads=*/true, H, x.dim(-2), D);
  return Results{result};
}

Outcome gptc::reference::eval(gpt::MergeHeadsOp op, const Call &call) {
  const Tensor &x = call[op.getX()];
  int64_t H = x.dim(-3), T = x.dim(-2), D = x.dim(-1);
  std::vector<int64_t> shape(x.shape.begin(), x.shape.end() - 3);
  shape.insert(shape.end(), {T, H * D});
  auto result = allocate(op, shape);
  if (!result)
    return failure();
  moveHeads(x, *result, /*toHeads=*/false, H, T, D);
  return Results{result};
}

/// Index i of the part is index i / take * of + from + i % take of x.
Outcome gptc::reference::eval(gpt::HeadPartOp op, const Call &call) {
  const Tensor &x = call[op.getX()];
  int64_t from = op.getFrom(), take = op.getTake(), of = op.getOf();
  std::vector<int64_t> shape = x.shape;
  int64_t whole = shape[op.getAxis()], part = whole / of * take;
  int64_t outer = 1, inner = 1;
  for (int64_t d = 0; d < x.rank(); ++d)
    if (d != int64_t(op.getAxis()))
      (d < int64_t(op.getAxis()) ? outer : inner) *= x.dim(d);
  shape[op.getAxis()] = part;
  auto result = allocate(op, shape);
  if (!result)
    return failure();
  for (int64_t o = 0; o < outer; ++o)
    for (int64_t i = 0; i < part; ++i) {
      int64_t source = i / take * of + from + i % take;
      std::copy_n(x.data.begin() + (o * whole + source) * inner, inner,
                  result->data.begin() + (o * part + i) * inner);
    }
  return Results{result};
}

//===----------------------------------------------------------------------===//
// Argmax
//===----------------------------------------------------------------------===//

/// Of columns [from, to). A NaN is below every number; of equal numbers the
/// first counts.
static int64_t largestIn(const double *row, int64_t from, int64_t to) {
  int64_t best = from;
  for (int64_t j = from + 1; j < to; ++j)
    if (row[j] > row[best] || (std::isnan(row[best]) && !std::isnan(row[j])))
      best = j;
  return best;
}

std::pair<TensorRef, TensorRef> gptc::reference::largestOf(const TensorRef &x,
                                                           int64_t block) {
  int64_t N = x->columns(), P = (N + block - 1) / block;
  auto values = std::make_shared<Tensor>();
  values->shape = {x->rows(), P};
  values->among = x;
  values->block = block;
  auto columns = std::make_shared<Tensor>(*values);
  columns->kind = Tensor::Kind::Int;
  for (int64_t row = 0; row < x->rows(); ++row)
    for (int64_t from = 0; from < N; from += block) {
      const double *numbers = &x->data[row * N];
      int64_t best = largestIn(numbers, from, std::min(from + block, N));
      values->data.push_back(numbers[best]);
      columns->ints.push_back(best);
    }
  return {values, columns};
}

Outcome gptc::reference::eval(gpt::ArgmaxOp op, const Call &call) {
  const TensorRef &x = call.ref(op.getX());
  std::vector<int64_t> shape(x->shape.begin(), x->shape.end() - 1);
  if (x->columns() == 0)
    return Results{makeInts(shape, std::vector<int64_t>(x->rows(), 0))};
  auto columns = std::make_shared<Tensor>(*largestOf(x, x->columns()).second);
  columns->shape = std::move(shape);
  return Results{columns};
}

Outcome gptc::reference::eval(gpt::MergeArgmaxOp op, const Call &call) {
  const Tensor &values = call[op.getValues()], &columns = call[op.getColumns()];
  int64_t T = values.rows(), P = values.columns();
  if (failed(expectExtent(op, columns.rows(), T, "rows of columns")) ||
      failed(expectExtent(op, columns.columns(), P, "blocks of columns")))
    return failure();
  auto result = std::make_shared<Tensor>();
  result->kind = Tensor::Kind::Int;
  result->shape = {T};
  for (int64_t t = 0; t < T; ++t)
    result->ints.push_back(
        P ? columns.ints[t * P + largestIn(&values.data[t * P], 0, P)] : 0);
  result->among = columns.among;
  result->block = columns.among ? columns.among->columns() : 0;
  return Results{result};
}
