//===- RespellOrder.cpp - order, copies and things that do nothing --------===//

#include "RespellParts.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace gptc::fuzz;
namespace gpt = gptc::gpt;

static bool isActivation(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  Operation *op = value.getDefiningOp();
  return type && type.getElementType().isF32() && type.getRank() >= 2 &&
         !isa_and_nonnull<ml_program::GlobalLoadConstOp, arith::ConstantOp,
                          gpt::BroadcastOp, tensor::ExtractSliceOp>(op);
}

/// A random use of an activation by an op of the body; null if there is none.
static OpOperand *pickUse(Site &site) {
  llvm::SmallVector<OpOperand *> uses;
  for (Operation &op : site.body())
    for (OpOperand &use : op.getOpOperands())
      if (isActivation(use.get()))
        uses.push_back(&use);
  return uses.empty() ? nullptr : site.choice.in(uses);
}

bool gptc::fuzz::swapOperands(Site &site) {
  Operation *op = site.pickOp([](Operation *each) {
    return isa<arith::AddFOp, arith::MulFOp, arith::MaximumFOp>(each) &&
           each->getOperand(0) != each->getOperand(1);
  });
  if (!op)
    return false;
  Value first = op->getOperand(0);
  op->setOperand(0, op->getOperand(1));
  op->setOperand(1, first);
  return true;
}

/// (a + b) + c = a + (b + c).
bool gptc::fuzz::regroupSum(Site &site) {
  auto op = site.pick<arith::AddFOp>([](arith::AddFOp each) {
    return bool(each.getLhs().getDefiningOp<arith::AddFOp>());
  });
  if (!op)
    return false;
  auto inner = op.getLhs().getDefiningOp<arith::AddFOp>();
  site.builder.setInsertionPoint(op);
  Value right = arith::AddFOp::create(site.builder, op.getLoc(), inner.getRhs(),
                                      op.getRhs());
  op->setOperands({inner.getLhs(), right});
  if (inner->use_empty())
    inner->erase();
  return true;
}

/// a + b = a - (-b).
bool gptc::fuzz::subtract(Site &site) {
  auto op = site.pick<arith::AddFOp>();
  if (!op)
    return false;
  site.builder.setInsertionPoint(op);
  Value minus = arith::NegFOp::create(site.builder, op.getLoc(), op.getRhs());
  Value made =
      arith::SubFOp::create(site.builder, op.getLoc(), op.getLhs(), minus);
  op.getResult().replaceAllUsesWith(made);
  op->erase();
  return true;
}

/// x / (1 + exp(-x)).
bool gptc::fuzz::spellSilu(Site &site) {
  auto op = site.pick<gpt::SiluOp>();
  if (!op)
    return false;
  OpBuilder &b = site.builder;
  b.setInsertionPoint(op);
  Location loc = op.getLoc();
  Value x = op.getX(), one = site.splat(loc, 1, x);
  Value e = math::ExpOp::create(b, loc, arith::NegFOp::create(b, loc, x));
  Value sum = arith::AddFOp::create(b, loc, one, e);
  Value made;
  if (site.choice.chance(50))
    made = arith::DivFOp::create(b, loc, x, sum);
  else
    made = arith::MulFOp::create(b, loc, x,
                                 arith::DivFOp::create(b, loc, one, sum));
  op.getResult().replaceAllUsesWith(made);
  op->erase();
  return true;
}

bool gptc::fuzz::insertDropout(Site &site) {
  OpOperand *use = pickUse(site);
  if (!use)
    return false;
  site.builder.setInsertionPoint(use->getOwner());
  Value x = use->get();
  use->set(gpt::DropoutOp::create(site.builder, x.getLoc(), x.getType(), x,
                                  site.builder.getF64FloatAttr(0.1)));
  return true;
}

bool gptc::fuzz::insertIdentity(Site &site) {
  OpOperand *use = pickUse(site);
  if (!use)
    return false;
  OpBuilder &b = site.builder;
  b.setInsertionPoint(use->getOwner());
  Value x = use->get(), made;
  Location loc = x.getLoc();
  auto type = cast<RankedTensorType>(x.getType());
  switch (site.choice.below(5)) {
  case 0:
    made = site.scale(loc, x, 1);
    break;
  case 1:
    made = arith::MulFOp::create(b, loc, x, site.splat(loc, 1, x));
    break;
  case 2:
    made = arith::AddFOp::create(b, loc, site.splat(loc, 0, x), x);
    break;
  case 3:
    made = arith::NegFOp::create(b, loc, arith::NegFOp::create(b, loc, x));
    break;
  default: {
    // Into heads and back.
    int64_t C = type.getShape().back();
    if (ShapedType::isDynamic(C) || C % 2 != 0)
      return false;
    llvm::SmallVector<int64_t> shape(type.getShape().drop_back(2));
    shape.append({2, type.getDimSize(type.getRank() - 2), C / 2});
    Value heads = gpt::SplitHeadsOp::create(
        b, loc, RankedTensorType::get(shape, type.getElementType()), x);
    made = gpt::MergeHeadsOp::create(b, loc, type, heads);
    break;
  }
  }
  use->set(made);
  return true;
}

/// An op computed again for one of its users.
bool gptc::fuzz::copyOp(Site &site) {
  Operation *op = site.pickOp([](Operation *each) {
    return each->getNumResults() == 1 && each->getNumRegions() == 0 &&
           !each->use_empty() && !each->hasOneUse();
  });
  if (!op)
    return false;
  llvm::SmallVector<OpOperand *> uses(llvm::make_pointer_range(op->getUses()));
  OpOperand *use = site.choice.in(uses);
  site.builder.setInsertionPointAfter(op);
  use->set(site.builder.clone(*op)->getResult(0));
  return true;
}

/// Another order of the ops that defines every value before its uses.
bool gptc::fuzz::permute(Site &site) {
  Block &body = site.body();
  llvm::DenseMap<Operation *, int64_t> missing;
  llvm::SmallVector<Operation *> ready, order;
  for (Operation &op : body.without_terminator()) {
    int64_t count = llvm::count_if(op.getOperands(), [](Value value) {
      return value.getDefiningOp() != nullptr;
    });
    missing[&op] = count;
    if (count == 0)
      ready.push_back(&op);
  }
  while (!ready.empty()) {
    std::swap(ready[site.choice.below(static_cast<int64_t>(ready.size()))],
              ready.back());
    Operation *op = ready.pop_back_val();
    order.push_back(op);
    for (Value result : op->getResults())
      for (Operation *user : result.getUsers())
        if (auto it = missing.find(user); it != missing.end())
          if (--it->second == 0)
            ready.push_back(user);
  }
  for (Operation *op : order)
    op->moveBefore(body.getTerminator());
  return order.size() > 1;
}
