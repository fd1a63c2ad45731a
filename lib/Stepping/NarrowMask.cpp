//===- NarrowMask.cpp - masks without the sizes of scores -----------------===//
//
// Matches:  %a = gpt.broadcast %rows like %scores        tensor<?x1xi32>
//           %b = gpt.broadcast %columns like %scores     tensor<?xi32>
//           %m = arith.cmpi eq, %a, %b                   tensor<4x?x?xi1>
// Produces: %a = gpt.broadcast %rows like %rows, %columns
//           %b = gpt.broadcast %columns like %rows, %columns
//           %m = arith.cmpi eq, %a, %b                   tensor<?x?xi1>
//
// A mask repeats by itself along the dimensions that it lacks, so what it is
// computed from has all the sizes it needs; fused attention has no scores to
// take them of. Only elementwise ops are made again.
//
//===----------------------------------------------------------------------===//
#include "Masks.h"
#include "gptc/Stepping/Elementwise.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace gptc;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

namespace {
class Narrower {
public:
  explicit Narrower(RewriterBase &rewriter) : rewriter(rewriter) {}
  Value run(Value mask);

private:
  void read(Value value);
  Value widened(Value value);

  RewriterBase &rewriter;
  llvm::MapVector<Value, Value> leaves;      // of the mask, to what they repeat
  llvm::MapVector<Value, Attribute> numbers; // constants that are all one
  llvm::SetVector<Operation *> ops;          // between, operands first
  SmallVector<Value> like;                   // what has the sizes
  SmallVector<int64_t> shape;
  bool ofScores = false; // the sizes are those of scores
};
} // namespace

/// Whether `value` is made of a product of activations, element by element.
static bool isScores(Value value) {
  for (int i = 0; i < 32; ++i) {
    Operation *op = value.getDefiningOp();
    if (isa_and_nonnull<gpt::MatmulOp>(op))
      return true;
    if (!isa_and_nonnull<gpt::ScaleOp, gpt::SoftcapOp, gpt::AlibiOp,
                         gpt::MaskOp, gpt::CausalMaskOp>(op) &&
        !isElementwiseOnTensors(op))
      return false;
    value = op->getOperand(isa<arith::SelectOp>(op) ? 1 : 0);
  }
  return false;
}

void Narrower::read(Value value) {
  if (leaves.contains(value) || numbers.contains(value))
    return;
  if (auto broadcast = value.getDefiningOp<gpt::BroadcastOp>())
    ofScores |= llvm::any_of(broadcast.getLike(), isScores);
  Value leaf = unbroadcast(value);
  Operation *op = leaf.getDefiningOp();
  if (Attribute number = constantNumber(leaf)) {
    numbers[value] = number;
  } else if (leaf != value || !isElementwiseOnTensors(op)) {
    leaves[value] = leaf;
  } else if (!ops.contains(op)) {
    for (Value operand : op->getOperands())
      read(operand);
    ops.insert(op);
  }
}

/// A leaf or a number with all dimensions.
Value Narrower::widened(Value value) {
  auto type = RankedTensorType::get(shape, typeOf(value).getElementType());
  Value leaf = leaves.lookup(value);
  if (!leaf) {
    auto own = type.hasStaticShape() ? type : type.clone(ArrayRef<int64_t>());
    leaf = arith::ConstantOp::create(
        rewriter, value.getLoc(),
        DenseElementsAttr::get(own, numbers.lookup(value)));
  }
  if (leaf.getType() == type)
    return leaf;
  return gpt::BroadcastOp::create(rewriter, value.getLoc(), type, leaf, like);
}

Value Narrower::run(Value mask) {
  mask = unbroadcast(mask);
  if (!isElementwiseOnTensors(mask.getDefiningOp()))
    return mask;
  read(mask);
  // The sizes of the leaves together; one that has all of them will do.
  for (auto [value, leaf] : leaves)
    if (typeOf(leaf).getRank() > 0 && !llvm::is_contained(like, leaf))
      like.push_back(leaf);
  FailureOr<SmallVector<int64_t>> sizes =
      gpt::jointShape(ValueRange(like).getTypes());
  if (failed(sizes))
    return mask;
  shape = *sizes;
  if (!ofScores && ArrayRef(shape) == typeOf(mask).getShape())
    return mask;
  for (Value leaf : like)
    if (typeOf(leaf).getShape() == ArrayRef(shape)) {
      like = {leaf};
      break;
    }
  IRMapping map;
  for (Value value : llvm::make_first_range(leaves))
    map.map(value, widened(value));
  for (Value value : llvm::make_first_range(numbers))
    map.map(value, widened(value));
  for (Operation *op : ops) {
    Operation *made = rewriter.clone(*op, map);
    Value result = made->getResult(0);
    result.setType(
        RankedTensorType::get(shape, typeOf(result).getElementType()));
  }
  return map.lookup(mask);
}

Value gptc::narrowMask(RewriterBase &rewriter, Value mask) {
  return Narrower(rewriter).run(mask);
}
