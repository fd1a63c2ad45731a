//===- PositionMask.cpp - a mask that compares positions ------------------===//
//
// Matches:  %pos = gpt.positions %tokens
//           %i = gpt.broadcast (tensor.expand_shape %pos to [T, 1]) like ..
//           %j = gpt.broadcast %pos like ..
//           %see = arith.cmpi sge, %i, %j
//           %m = gpt.mask %s, %see
// Produces: %m = gpt.causal_mask %s
//
// Also: a constant 0, 1, 2, .. as positions; constants added to either side;
// the operands and the predicate the other way round; `andi` with another
// comparison, which makes the window (i - j < w); xori with true and ori for
// hidden keys; select(see, 0, -inf) as an additive mask; the window alone,
// where another mask of the attention is causal.
//
// Refuses positions of which it is not known how the last query's relates to
// the last key's: those of one sequence are equal, those of static length and
// constants are counted.
//
//===----------------------------------------------------------------------===//
#include "Masks.h"
#include "gptc/Stepping/Elementwise.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace mlir;
using namespace gptc;

namespace {
/// So far may a sum of positions and constants go without leaving 32 bits.
constexpr int64_t kFar = int64_t(1) << 29;

/// Indices 0, 1, .. along a dimension, times a factor.
struct Indices {
  int64_t factor = 0;
  Value ids;          // of gpt.positions; null: a constant
  int64_t length = 0; // or dynamic

  bool isSame(const Indices &other) const {
    return ids == other.ids && length == other.length;
  }
};

/// i, of the query, plus j, of the key, plus a constant.
struct Sum {
  Indices i, j;
  int64_t constant = 0;
};

class Reader {
public:
  /// Reads which keys a condition shows, or hides if `negated`, into `least`
  /// and `most`. False for a condition that says anything else.
  bool readCondition(Value value, bool negated);
  /// The same of numbers that are added: 0 where a key is visible. `filled` if
  /// it is hidden by a finite number.
  bool readAdditive(Value value, bool &filled);

  Indices i, j;
  // A key is visible if i - j is from `least` to `most`; none: no such bound.
  std::optional<int64_t> least, most;

private:
  bool readCompare(arith::CmpIOp op, bool negated);
  std::optional<Sum> readSum(Value value);
  std::optional<Sum> readSum(Value left, Value right, int64_t sign);

  int budget = 64; // values that are looked at
};
} // namespace

/// Puts indices along the dimension of a tensor that is not 1: none if there is
/// none, or another one, or it is neither that of queries nor of keys.
static std::optional<Sum> alongDim(RankedTensorType type, Indices indices,
                                   int64_t constant) {
  ArrayRef<int64_t> shape = type.getShape();
  if (llvm::count_if(shape, [](int64_t size) { return size != 1; }) != 1)
    return std::nullopt;
  Sum sum;
  if (shape.back() != 1)
    sum.j = indices;
  else if (shape[shape.size() - 2] != 1)
    sum.i = indices;
  else
    return std::nullopt;
  sum.constant = constant;
  return sum;
}

static std::optional<Sum> readConstant(DenseIntElementsAttr constant) {
  SmallVector<int64_t> numbers;
  for (const APInt &each : constant.getValues<APInt>())
    numbers.push_back(each.getSExtValue());
  if (numbers.empty() || std::abs(numbers.front()) > kFar)
    return std::nullopt;
  for (auto [n, each] : llvm::enumerate(numbers))
    if (each != numbers.front() + static_cast<int64_t>(n))
      return std::nullopt;
  return alongDim(cast<RankedTensorType>(constant.getType()),
                  {1, {}, static_cast<int64_t>(numbers.size())},
                  numbers.front());
}

/// a + sign * b, of one dimension.
static bool addIndices(Indices &a, const Indices &b, int64_t sign) {
  if (b.factor && a.factor && !a.isSame(b))
    return false;
  int64_t factor = a.factor + sign * b.factor;
  if (b.factor)
    a = b;
  a.factor = factor;
  return std::abs(factor) <= 1;
}

std::optional<Sum> Reader::readSum(Value left, Value right, int64_t sign) {
  std::optional<Sum> a = readSum(left), b = readSum(right);
  if (!a || !b || !addIndices(a->i, b->i, sign) ||
      !addIndices(a->j, b->j, sign))
    return std::nullopt;
  a->constant += sign * b->constant;
  return std::abs(a->constant) <= kFar ? a : std::nullopt;
}

std::optional<Sum> Reader::readSum(Value value) {
  // Others wrap elsewhere.
  if (budget-- <= 0 || !getElementTypeOrSelf(value.getType()).isInteger(32))
    return std::nullopt;
  value = unbroadcast(value);
  Operation *op = value.getDefiningOp();
  if (!op)
    return std::nullopt;
  if (auto number = dyn_cast_or_null<IntegerAttr>(constantNumber(value))) {
    Sum sum;
    sum.constant = number.getInt();
    return std::abs(sum.constant) <= kFar ? std::optional(sum) : std::nullopt;
  }
  DenseIntElementsAttr constant;
  if (matchPattern(value, m_Constant(&constant)))
    return readConstant(constant);
  if (auto positions = dyn_cast<gpt::PositionsOp>(op)) {
    auto type = cast<RankedTensorType>(value.getType());
    return alongDim(type, {1, positions.getIds(), type.getDimSize(0)}, 0);
  }
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op)) {
    // [T] to [T, 1] or [1, T].
    std::optional<Sum> from = readSum(expand.getSrc());
    if (!from || expand.getSrcType().getRank() != 1 || from->i.factor)
      return std::nullopt;
    return alongDim(expand.getResultType(), from->j, from->constant);
  }
  if (isa<arith::AddIOp, arith::SubIOp>(op))
    return readSum(op->getOperand(0), op->getOperand(1),
                   isa<arith::AddIOp>(op) ? 1 : -1);
  return std::nullopt;
}

bool Reader::readCompare(arith::CmpIOp op, bool negated) {
  std::optional<Sum> sum = readSum(op.getLhs(), op.getRhs(), -1);
  if (!sum || sum->i.factor + sum->j.factor != 0 || !sum->i.factor)
    return false;
  using Predicate = arith::CmpIPredicate;
  Predicate predicate = op.getPredicate();
  if (negated)
    predicate = arith::invertPredicate(predicate);
  // factor * (i - j) + constant, compared with 0.
  bool above = llvm::is_contained({Predicate::sge, Predicate::sgt}, predicate);
  bool below = llvm::is_contained({Predicate::sle, Predicate::slt}, predicate);
  bool strict = llvm::is_contained({Predicate::sgt, Predicate::slt}, predicate);
  if (!above && !below)
    return false;
  int64_t bound = -sum->constant;
  if (sum->i.factor < 0) {
    std::swap(above, below);
    bound = -bound;
  }
  bound += strict ? (above ? 1 : -1) : 0;
  sum->i.factor = sum->j.factor = 1;
  if ((i.factor && !i.isSame(sum->i)) || (j.factor && !j.isSame(sum->j)))
    return false;
  i = sum->i;
  j = sum->j;
  if (above)
    least = std::max(least.value_or(bound), bound);
  else
    most = std::min(most.value_or(bound), bound);
  return true;
}

bool Reader::readCondition(Value value, bool negated) {
  if (budget-- <= 0)
    return false;
  value = unbroadcast(value);
  Operation *op = value.getDefiningOp();
  if (auto compare = dyn_cast_or_null<arith::CmpIOp>(op))
    return readCompare(compare, negated);
  if (isa_and_nonnull<arith::XOrIOp>(op))
    for (unsigned n : {0, 1}) {
      auto number = dyn_cast_or_null<IntegerAttr>(
          constantNumber(unbroadcast(op->getOperand(n))));
      if (number && number.getValue().isAllOnes())
        return readCondition(op->getOperand(1 - n), !negated);
    }
  if (negated ? isa_and_nonnull<arith::OrIOp>(op)
              : isa_and_nonnull<arith::AndIOp>(op))
    return readCondition(op->getOperand(0), negated) &&
           readCondition(op->getOperand(1), negated);
  return false;
}

/// select(visible, 0, hidden), or the other way round.
bool Reader::readAdditive(Value value, bool &filled) {
  auto select = unbroadcast(value).getDefiningOp<arith::SelectOp>();
  if (!select)
    return false;
  auto a = splatConstant(select.getTrueValue()),
       b = splatConstant(select.getFalseValue());
  bool inverted = a && *a != 0;
  if (inverted)
    std::swap(a, b);
  if (!a || !b || *a != 0 || !(*b <= kHidden))
    return false;
  filled = std::isfinite(*b);
  return readCondition(select.getCondition(), inverted);
}

Value gptc::positionMask(RewriterBase &rewriter, gpt::MaskOp op, bool only,
                         bool causal) {
  Reader reader;
  bool filled = op.getFill() && op.getFill()->isFinite();
  if (filled && !(op.getFill()->convertToDouble() <= kHidden))
    return {};
  bool boolean = getElementTypeOrSelf(op.getMask().getType()).isInteger(1);
  if (boolean ? !reader.readCondition(op.getMask(), false)
              : !reader.readAdditive(op.getMask(), filled))
    return {};
  const Indices &i = reader.i, &j = reader.j;
  // As causal_mask is aligned: the last query is at the last key.
  int64_t offset = 0;
  if (i.ids != j.ids || !i.ids) {
    if (ShapedType::isDynamic(i.length) || ShapedType::isDynamic(j.length))
      return {};
    offset = i.length - j.length;
  }
  // Filled with a finite number, a row without any key is an even mixture.
  if (filled && (!only || offset > 0))
    return {};
  if (causal ? reader.least > offset : reader.least != offset)
    return {};
  IntegerAttr window;
  if (reader.most) {
    if (*reader.most < offset)
      return {};
    window = rewriter.getI64IntegerAttr(*reader.most - offset + 1);
  }
  return gpt::CausalMaskOp::create(rewriter, op.getLoc(), op.getS().getType(),
                                   op.getS(), window);
}
