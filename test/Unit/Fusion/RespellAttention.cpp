//===- RespellAttention.cpp - scales and heads in other spellings ---------===//
//
// Factors are moved and split by powers of two, which round nothing.
//
//===----------------------------------------------------------------------===//

#include "RespellParts.h"
#include <cmath>

using namespace mlir;
using namespace gptc::fuzz;
namespace gpt = gptc::gpt;

static bool isPowerOfTwo(double x) {
  int exponent;
  return std::fabs(std::frexp(x, &exponent)) == 0.5;
}

static double factorOf(gpt::ScaleOp op) {
  return op.getFactor().convertToDouble();
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
