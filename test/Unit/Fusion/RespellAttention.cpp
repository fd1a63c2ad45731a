//===- RespellAttention.cpp - scales, masks and heads in other spellings --===//
//
// Factors are moved and split by powers of two, which round nothing.
//
//===----------------------------------------------------------------------===//

#include "RespellParts.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace gptc::fuzz;
namespace gpt = gptc::gpt;

static constexpr double hidden = -std::numeric_limits<double>::infinity();

static bool isPowerOfTwo(double x) {
  int exponent;
  return std::fabs(std::frexp(x, &exponent)) == 0.5;
}

static double factorOf(gpt::ScaleOp op) {
  return op.getFactor().convertToDouble();
}

static void replace(Operation *op, Value value) {
  op->getResult(0).replaceAllUsesWith(value);
  op->erase();
}

/// x * factor in some spelling.
static Value multiplied(Site &site, Location loc, Value x, double factor) {
  OpBuilder &b = site.builder;
  switch (site.choice.below(6)) {
  case 0: {
    Value left = x, right = site.splat(loc, factor, x);
    if (site.choice.chance(50))
      std::swap(left, right);
    return arith::MulFOp::create(b, loc, left, right);
  }
  case 1:
    if (isPowerOfTwo(factor))
      return arith::DivFOp::create(b, loc, x, site.splat(loc, 1 / factor, x));
    [[fallthrough]];
  case 2: {
    double first = site.choice.of({0.5, 2.0, 0.25, 4.0});
    return site.scale(loc, site.scale(loc, x, first), factor / first);
  }
  case 3:
    return arith::NegFOp::create(b, loc, site.scale(loc, x, -factor));
  case 4: {
    // A weight of one number: known when running only.
    OpBuilder::InsertionGuard guard(b);
    std::vector<int64_t> shape(site.choice.of({1, 2}), 1);
    Value number = site.weight(
        "factor", shape, {static_cast<double>(static_cast<float>(factor))});
    Value wide = gpt::BroadcastOp::create(b, loc, x.getType(), number, x);
    return arith::MulFOp::create(b, loc, x, wide);
  }
  default:
    return site.scale(loc, x, factor);
  }
}

bool gptc::fuzz::spellScale(Site &site) {
  auto op = site.pick<gpt::ScaleOp>();
  if (!op)
    return false;
  site.builder.setInsertionPoint(op);
  replace(op, multiplied(site, op.getLoc(), op.getX(), factorOf(op)));
  return true;
}

static bool isScores(Operation *op) {
  auto product = dyn_cast_or_null<gpt::MatmulOp>(op);
  return product && product.getTransposeB();
}

/// A factor of the product of q and k becomes one of q, of k, or of both.
bool gptc::fuzz::moveScale(Site &site) {
  auto op = site.pick<gpt::ScaleOp>([](gpt::ScaleOp each) {
    return isScores(each.getX().getDefiningOp()) && each.getX().hasOneUse();
  });
  if (!op)
    return false;
  auto product = op.getX().getDefiningOp<gpt::MatmulOp>();
  double q = factorOf(op), k = 1;
  if (site.choice.chance(50)) {
    k = site.choice.of({0.5, 0.25, 2.0});
    q /= k;
  }
  if (site.choice.chance(30))
    std::swap(q, k);
  site.builder.setInsertionPoint(product);
  for (auto [operand, factor] :
       {std::pair(&product.getAMutable(), q), {&product.getBMutable(), k}})
    if (factor != 1) {
      Value x = operand->get();
      Value made = multiplied(site, x.getLoc(), x, factor);
      operand->assign(made);
    }
  replace(op, product);
  return true;
}

/// q is multiplied by what k is divided by, or the product is.
bool gptc::fuzz::insertScales(Site &site) {
  auto product = site.pick<gpt::MatmulOp>(
      [](gpt::MatmulOp each) { return isScores(each); });
  if (!product)
    return false;
  double factor = site.choice.of({2.0, 0.5, 8.0});
  site.builder.setInsertionPoint(product);
  Value q = product.getA();
  product.getAMutable().assign(multiplied(site, q.getLoc(), q, factor));
  if (site.choice.chance(50)) {
    Value k = product.getB();
    product.getBMutable().assign(multiplied(site, k.getLoc(), k, 1 / factor));
    return true;
  }
  site.builder.setInsertionPointAfter(product);
  Value raw = product.getResult();
  llvm::SmallVector<OpOperand *> uses(llvm::make_pointer_range(raw.getUses()));
  Value back = multiplied(site, product.getLoc(), raw, 1 / factor);
  for (OpOperand *use : uses)
    use->set(back);
  return true;
}

/// A factor commutes with splitting into heads and with rotation.
bool gptc::fuzz::pushScale(Site &site) {
  auto commutes = [](Operation *op) {
    return isa_and_nonnull<gpt::SplitHeadsOp, gpt::MergeHeadsOp, gpt::RopeOp>(
        op);
  };
  auto op = site.pick<gpt::ScaleOp>([&](gpt::ScaleOp each) {
    Operation *from = each.getX().getDefiningOp();
    return commutes(from) && from->hasOneUse();
  });
  if (!op)
    return false;
  Operation *inner = op.getX().getDefiningOp();
  site.builder.setInsertionPoint(inner);
  Value x = inner->getOperand(0);
  inner->setOperand(0, site.scale(op.getLoc(), x, factorOf(op)));
  replace(op, inner->getResult(0));
  return true;
}

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

bool gptc::fuzz::spellSoftcap(Site &site) {
  auto op = site.pick<gpt::SoftcapOp>([](gpt::SoftcapOp each) {
    return isPowerOfTwo(each.getCap().convertToDouble());
  });
  if (!op)
    return false;
  double cap = op.getCap().convertToDouble();
  site.builder.setInsertionPoint(op);
  Location loc = op.getLoc();
  Value x = multiplied(site, loc, op.getX(), 1 / cap);
  Value y = math::TanhOp::create(site.builder, loc, x);
  replace(op, multiplied(site, loc, y, cap));
  return true;
}

/// Keys and values repeated for the query heads that share them.
bool gptc::fuzz::repeatHeads(Site &site) {
  auto product = site.pick<gpt::MatmulOp>([](gpt::MatmulOp each) {
    return each.getTransposeB() && each.getGroups() > 1 &&
           cast<RankedTensorType>(each.getType()).getRank() == 3;
  });
  if (!product)
    return false;
  int64_t groups = static_cast<int64_t>(product.getGroups());
  // Both products of the attention, or one of them.
  llvm::SmallVector<gpt::MatmulOp> products{product};
  if (site.choice.chance(80))
    for (auto other : site.body().getOps<gpt::MatmulOp>())
      if (!other.getTransposeB() &&
          static_cast<int64_t>(other.getGroups()) == groups)
        products.push_back(other);
  OpBuilder &b = site.builder;
  for (gpt::MatmulOp op : products) {
    b.setInsertionPoint(op);
    Location loc = op.getLoc();
    Value x = op.getB();
    auto type = cast<RankedTensorType>(x.getType());
    int64_t G = type.getDimSize(0), S = type.getDimSize(1),
            D = type.getDimSize(2);
    llvm::SmallVector<ReassociationIndices> apart{{0, 1}, {2}, {3}};
    Value size = S == ShapedType::kDynamic
                     ? tensor::DimOp::create(b, loc, x, 1).getResult()
                     : Value();
    auto shape = [&](int64_t repeat) {
      return RankedTensorType::get({G, repeat, S, D}, b.getF32Type());
    };
    llvm::SmallVector<OpFoldResult> sizes{
        b.getIndexAttr(G), b.getIndexAttr(1),
        size ? OpFoldResult(size) : OpFoldResult(b.getIndexAttr(S)),
        b.getIndexAttr(D)};
    Value one =
        tensor::ExpandShapeOp::create(b, loc, shape(1), x, apart, sizes);
    llvm::SmallVector<Value> dynamic;
    if (size)
      dynamic.push_back(size);
    Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0));
    Value like = tensor::SplatOp::create(b, loc, zero, shape(groups).getShape(),
                                         dynamic);
    Value all = gpt::BroadcastOp::create(b, loc, shape(groups), one, like);
    Value repeated = tensor::CollapseShapeOp::create(
        b, loc, RankedTensorType::get({G * groups, S, D}, b.getF32Type()), all,
        apart);
    op.getBMutable().assign(repeated);
    op.setGroups(1);
  }
  return true;
}
