//===- RespellMasks.cpp - masks in other spellings ------------------------===//
#include "RespellParts.h"
#include <cmath>
#include <limits>
#include <numeric>

using namespace mlir;
using namespace gptc::fuzz;
namespace gpt = gptc::gpt;

static constexpr double hidden = -std::numeric_limits<double>::infinity();

/// Hiding what is hidden changes nothing; neither does a wider window.
bool gptc::fuzz::repeatMask(Site &site) {
  auto op = site.pick<gpt::CausalMaskOp>();
  if (!op)
    return false;
  IntegerAttr window;
  if (op.getWindow() && site.choice.chance(70))
    window = site.builder.getI64IntegerAttr(
        static_cast<int64_t>(*op.getWindow()) + site.choice.below(3));
  bool before = site.choice.chance(50);
  if (before) {
    site.builder.setInsertionPoint(op);
    Value s = gpt::CausalMaskOp::create(site.builder, op.getLoc(), op.getType(),
                                        op.getS(), window);
    op.getSMutable().assign(s);
    return true;
  }
  site.builder.setInsertionPointAfter(op);
  Value old = op.getResult();
  llvm::SmallVector<OpOperand *> uses(llvm::make_pointer_range(old.getUses()));
  Value s = gpt::CausalMaskOp::create(site.builder, op.getLoc(), op.getType(),
                                      old, window);
  for (OpOperand *use : uses)
    use->set(s);
  return true;
}

/// Whether a finite number hides as well as -inf: only the softmax sees it, and
/// no other mask may hide the rest of a row.
static bool mayFill(gpt::CausalMaskOp op) {
  auto function = op->getParentOfType<func::FuncOp>();
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    if (auto name = function.getArgAttrOfType<StringAttr>(i, "gpt.arg");
        name && name == "mask")
      return false;
  Operation *user = op;
  while (!isa<gpt::SoftmaxOp>(user)) {
    user = soleUser(user->getResult(0));
    if (!user || user->getNumResults() != 1)
      return false;
  }
  return true;
}

/// A causal mask over scores of known size, as a tensor.
bool gptc::fuzz::constantMask(Site &site) {
  auto op = site.pick<gpt::CausalMaskOp>([](gpt::CausalMaskOp each) {
    auto type = cast<RankedTensorType>(each.getType());
    return !llvm::any_of(type.getShape().take_back(2), ShapedType::isDynamic);
  });
  if (!op)
    return false;
  OpBuilder &b = site.builder;
  b.setInsertionPoint(op);
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getType());
  int64_t Sq = type.getDimSize(type.getRank() - 2), Sk = type.getShape().back();
  llvm::SmallVector<bool> visible;
  for (int64_t i = 0; i < Sq; ++i)
    for (int64_t j = 0; j < Sk; ++j) {
      int64_t at = i + Sk - Sq;
      visible.push_back(
          j <= at &&
          (!op.getWindow() || j > at - static_cast<int64_t>(*op.getWindow())));
    }
  double fill = site.choice.of({hidden, -1e9, -3.4028234663852886e38});
  if (!mayFill(op))
    fill = hidden;
  auto flags = RankedTensorType::get({Sq, Sk}, b.getI1Type());
  auto numbers = RankedTensorType::get({Sq, Sk}, b.getF32Type());
  bool keep = site.choice.chance(20); // both: the same twice
  Value s = op.getS();
  switch (site.choice.below(3)) {
  case 0: {
    llvm::SmallVector<float> values;
    for (bool each : visible)
      values.push_back(each ? 0.0f : static_cast<float>(fill));
    Value mask = arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(numbers, llvm::ArrayRef(values)));
    if (site.choice.chance(50)) {
      s = gpt::MaskOp::create(b, loc, type, s, mask, FloatAttr());
    } else {
      if (mask.getType() != type)
        mask = gpt::BroadcastOp::create(b, loc, type, mask, s);
      s = arith::AddFOp::create(b, loc, s, mask);
    }
    break;
  }
  case 1: {
    Value mask = arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(flags, visible));
    s = gpt::MaskOp::create(b, loc, type, s, mask,
                            std::isfinite(fill) ? b.getF64FloatAttr(fill)
                                                : FloatAttr());
    break;
  }
  default: {
    bool inverted = site.choice.chance(50);
    if (inverted)
      for (bool &each : visible)
        each = !each;
    Value mask = arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(flags, visible));
    auto wide = RankedTensorType::get(type.getShape(), b.getI1Type());
    if (mask.getType() != wide)
      mask = gpt::BroadcastOp::create(b, loc, wide, mask, s);
    Value other = site.splat(loc, fill, s);
    s = inverted ? arith::SelectOp::create(b, loc, mask, other, s)
                 : arith::SelectOp::create(b, loc, mask, s, other);
    break;
  }
  }
  if (keep)
    op.getSMutable().assign(s);
  else
    replace(op, s);
  return true;
}

/// A causal mask and another mask in the other order.
bool gptc::fuzz::swapMasks(Site &site) {
  auto op = site.pick<gpt::CausalMaskOp>([](gpt::CausalMaskOp each) {
    auto mask = each.getS().getDefiningOp<gpt::MaskOp>();
    // One that fills with a finite number would bring later keys back.
    return mask && mask->hasOneUse() && !mask.getFill();
  });
  if (!op)
    return false;
  auto mask = op.getS().getDefiningOp<gpt::MaskOp>();
  op.getSMutable().assign(mask.getS());
  Value old = op.getResult();
  site.builder.setInsertionPointAfter(op);
  llvm::SmallVector<OpOperand *> uses(llvm::make_pointer_range(old.getUses()));
  Value made = gpt::MaskOp::create(site.builder, mask.getLoc(), mask.getType(),
                                   old, mask.getMask(), FloatAttr());
  for (OpOperand *use : uses)
    use->set(made);
  mask.erase();
  return true;
}

/// One mask as two: each adds half, or both hide the same.
bool gptc::fuzz::splitMask(Site &site) {
  auto op = site.pick<gpt::MaskOp>();
  if (!op)
    return false;
  OpBuilder &b = site.builder;
  b.setInsertionPoint(op);
  Location loc = op.getLoc();
  Value mask = op.getMask();
  if (cast<RankedTensorType>(mask.getType()).getElementType().isF32())
    mask = gpt::ScaleOp::create(b, loc, mask.getType(), mask,
                                b.getF64FloatAttr(0.5));
  Value s = op.getS();
  for (int i = 0; i < 2; ++i)
    s = gpt::MaskOp::create(b, loc, op.getType(), s, mask, op.getFillAttr());
  replace(op, s);
  return true;
}

/// gpt.mask in arith.
bool gptc::fuzz::spellMask(Site &site) {
  auto op = site.pick<gpt::MaskOp>();
  if (!op)
    return false;
  OpBuilder &b = site.builder;
  b.setInsertionPoint(op);
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getType());
  Value mask = op.getMask();
  auto maskType = cast<RankedTensorType>(mask.getType());
  auto wide = RankedTensorType::get(type.getShape(), maskType.getElementType());
  if (maskType != wide)
    mask = gpt::BroadcastOp::create(b, loc, wide, mask, op.getS());
  if (maskType.getElementType().isF32()) {
    Value left = op.getS(), right = mask;
    if (site.choice.chance(30)) {
      right = arith::NegFOp::create(b, loc, right);
      replace(op, arith::SubFOp::create(b, loc, left, right));
      return true;
    }
    if (site.choice.chance(50))
      std::swap(left, right);
    replace(op, arith::AddFOp::create(b, loc, left, right));
    return true;
  }
  double fill = op.getFill() ? op.getFill()->convertToDouble() : hidden;
  Value other = site.splat(loc, fill, op.getS());
  replace(op, arith::SelectOp::create(b, loc, mask, op.getS(), other));
  return true;
}

/// A causal mask as a comparison of positions: those that the graph has, or
/// constants where sizes are known.
bool gptc::fuzz::comparePositions(Site &site) {
  gpt::PositionsOp positions;
  for (auto op : site.body().getOps<gpt::PositionsOp>())
    positions = positions ? positions : op;
  auto isKnown = [](RankedTensorType type) {
    return !llvm::any_of(type.getShape().take_back(2), ShapedType::isDynamic);
  };
  auto op = site.pick<gpt::CausalMaskOp>([&](gpt::CausalMaskOp each) {
    return isKnown(each.getType()) ||
           (positions && positions->isBeforeInBlock(each));
  });
  if (!op)
    return false;
  OpBuilder &b = site.builder;
  b.setInsertionPoint(op);
  Location loc = op.getLoc();
  RankedTensorType type = op.getType();
  bool known = isKnown(type) && (!positions || site.choice.chance(50));
  auto words = RankedTensorType::get(type.getShape(), b.getI32Type());
  auto flags = RankedTensorType::get(type.getShape(), b.getI1Type());
  auto wide = [&](Value x) -> Value {
    return gpt::BroadcastOp::create(b, loc, words, x, op.getS());
  };
  auto number = [&](int64_t n) -> Value {
    auto one = RankedTensorType::get({}, b.getI32Type());
    return wide(arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(one, static_cast<int32_t>(n))));
  };
  Value i, j;
  if (known) {
    // Counted from any number on, so that the last query is at the last key.
    int64_t Sq = type.getDimSize(type.getRank() - 2),
            Sk = type.getShape().back(), from = site.choice.below(3);
    auto count = [&](int64_t first, llvm::ArrayRef<int64_t> shape) {
      llvm::SmallVector<int32_t> numbers(shape[0] * shape.back());
      std::iota(numbers.begin(), numbers.end(), static_cast<int32_t>(first));
      return arith::ConstantOp::create(
          b, loc,
          DenseElementsAttr::get(RankedTensorType::get(shape, b.getI32Type()),
                                 llvm::ArrayRef(numbers)));
    };
    i = wide(count(from + Sk - Sq, {Sq, 1}));
    j = wide(count(from, {Sk}));
  } else {
    Value at = positions.getResult();
    int64_t T = positions.getType().getDimSize(0);
    OpFoldResult size = b.getIndexAttr(T);
    if (T == ShapedType::kDynamic)
      size = tensor::DimOp::create(b, loc, at, 0).getResult();
    Value column = tensor::ExpandShapeOp::create(
        b, loc, RankedTensorType::get({T, 1}, b.getI32Type()), at,
        llvm::ArrayRef<ReassociationIndices>{{0, 1}},
        {size, b.getIndexAttr(1)});
    i = wide(column);
    j = wide(at);
  }
  using Predicate = arith::CmpIPredicate;
  bool negated = site.choice.chance(30); // says which keys are hidden
  auto compare = [&](Predicate predicate, Value left, Value right) -> Value {
    if (negated)
      predicate = arith::invertPredicate(predicate);
    return arith::CmpIOp::create(b, loc, predicate, left, right);
  };
  Value see;
  switch (site.choice.below(4)) {
  case 0:
    see = compare(Predicate::sge, i, j);
    break;
  case 1:
    see = compare(Predicate::sle, j, i);
    break;
  case 2:
    see =
        compare(Predicate::slt, j, arith::AddIOp::create(b, loc, i, number(1)));
    break;
  default:
    see = compare(Predicate::sgt, arith::SubIOp::create(b, loc, i, j),
                  number(-1));
    break;
  }
  if (op.getWindow()) {
    Value near = compare(Predicate::slt, arith::SubIOp::create(b, loc, i, j),
                         number(static_cast<int64_t>(*op.getWindow())));
    see = negated ? Value(arith::OrIOp::create(b, loc, see, near))
                  : Value(arith::AndIOp::create(b, loc, see, near));
  }
  double fill = mayFill(op) && site.choice.chance(40)
                    ? site.choice.of({-1e9, -3e38})
                    : hidden;
  Value s = op.getS(), other = site.splat(loc, fill, s);
  if (site.choice.chance(30)) {
    Value zero = site.splat(loc, 0, s);
    Value add = arith::SelectOp::create(b, loc, see, negated ? other : zero,
                                        negated ? zero : other);
    s = arith::AddFOp::create(b, loc, s, add);
  } else if (negated && site.choice.chance(40)) {
    Value one = arith::ConstantOp::create(
        b, loc,
        DenseElementsAttr::get(RankedTensorType::get({}, b.getI1Type()), true));
    Value all = gpt::BroadcastOp::create(b, loc, flags, one, s);
    see = arith::XOrIOp::create(b, loc, see, all);
    s = gpt::MaskOp::create(b, loc, type, s, see,
                            std::isfinite(fill) ? b.getF64FloatAttr(fill)
                                                : FloatAttr());
  } else {
    s = arith::SelectOp::create(b, loc, see, negated ? other : s,
                                negated ? s : other);
  }
  replace(op, s);
  return true;
}

/// A mask that is computed along the scores.
bool gptc::fuzz::computeMask(Site &site) {
  auto op = site.pick<gpt::MaskOp>();
  if (!op)
    return false;
  OpBuilder &b = site.builder;
  b.setInsertionPoint(op);
  Location loc = op.getLoc();
  Value mask = op.getMask(), s = op.getS();
  Type element = getElementTypeOrSelf(mask.getType());
  auto type = RankedTensorType::get(op.getType().getShape(), element);
  mask = gpt::BroadcastOp::create(b, loc, type, mask, s);
  if (element.isF32()) {
    if (site.choice.chance(50))
      mask = arith::AddFOp::create(b, loc, mask, site.splat(loc, 0, s));
    else
      mask = arith::NegFOp::create(b, loc, arith::NegFOp::create(b, loc, mask));
  } else {
    mask = arith::AndIOp::create(b, loc, mask, mask);
  }
  op.getMaskMutable().assign(mask);
  return true;
}

/// What an additive mask hides, a boolean one hides too; what a boolean one
/// fills may be added to before.
bool gptc::fuzz::maskTwice(Site &site) {
  auto op = site.pick<gpt::MaskOp>();
  if (!op)
    return false;
  OpBuilder &b = site.builder;
  b.setInsertionPoint(op);
  Location loc = op.getLoc();
  Value mask = op.getMask();
  bool added = getElementTypeOrSelf(mask.getType()).isF32();
  auto with = [&](Value s, Value other) {
    return gpt::MaskOp::create(b, loc, op.getType(), s, other, FloatAttr());
  };
  if (!added) {
    auto type = cast<RankedTensorType>(mask.getType()).clone(b.getF32Type());
    auto all = [&](float number) {
      Value one = arith::ConstantOp::create(
          b, loc,
          DenseElementsAttr::get(RankedTensorType::get({}, b.getF32Type()),
                                 number));
      return gpt::BroadcastOp::create(b, loc, type, one, mask);
    };
    Value add = arith::SelectOp::create(b, loc, mask, all(0), all(4));
    op.getSMutable().assign(with(op.getS(), add));
    return true;
  }
  Value see = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGT, mask,
                                    site.splat(loc, hidden, mask));
  if (site.choice.chance(50)) {
    op.getSMutable().assign(with(op.getS(), see));
    return true;
  }
  b.setInsertionPointAfter(op);
  Value old = op.getResult();
  llvm::SmallVector<OpOperand *> uses(llvm::make_pointer_range(old.getUses()));
  Value made = with(old, see);
  for (OpOperand *use : uses)
    use->set(made);
  return true;
}
