//===- GptOps.cpp - verifiers of the graph and stepping ops ---------------===//
//
// Constraint numbers are those of docs/Semantics.md.
//
//===----------------------------------------------------------------------===//
#include "Verify.h"

using namespace mlir;
using namespace gptc::gpt;

#define GET_OP_CLASSES
#include "gptc/Dialect/Gpt/GptOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Tokens and positions
//===----------------------------------------------------------------------===//

LogicalResult EmbeddingOp::verify() {
  RankedTensorType table = getTable().getType();
  if (failed(expectRank(*this, "embedding-C1", "a table", table, 2)))
    return failure();
  return expectShape(*this, "embedding-C2", "a result", getResult().getType(),
                     {getIds().getType().getDimSize(0), table.getDimSize(1)});
}

LogicalResult SelectRowsOp::verify() {
  RankedTensorType x = getX().getType();
  if (failed(expectRank(*this, "select_rows-C1", "x", x, 2)))
    return failure();
  return expectShape(*this, "select_rows-C2", "a result", getResult().getType(),
                     {getRows().getType().getDimSize(0), x.getDimSize(1)});
}

//===----------------------------------------------------------------------===//
// Linear algebra
//===----------------------------------------------------------------------===//

LogicalResult LinearOp::verify() {
  RankedTensorType x = getX().getType();
  RankedTensorType weight = getWeight().getType();
  if (failed(expectRankAtLeast(*this, "linear-C1", "x", x, 1)) ||
      failed(expectRank(*this, "linear-C1", "a weight", weight, 2)))
    return failure();
  if (!agree(x.getShape().back(), inFeatures()))
    return emitOpError() << "[linear-C2] expected a weight with "
                         << x.getShape().back() << " input features ("
                         << (getInOut() ? "[in, out]" : "[out, in]")
                         << "), got " << weight;
  if (getBias() && failed(expectShape(*this, "linear-C3", "a bias",
                                      getBias().getType(), {outFeatures()})))
    return failure();
  SmallVector<int64_t> expected(x.getShape());
  expected.back() = outFeatures();
  return expectShape(*this, "linear-C4", "a result", getResult().getType(),
                     expected);
}

LogicalResult MatmulOp::verify() {
  RankedTensorType a = getA().getType(), b = getB().getType();
  if (failed(expectRankAtLeast(*this, "matmul-C1", "a", a, 3)) ||
      failed(expectRank(*this, "matmul-C1", "b", b, a.getRank())))
    return failure();
  int64_t rank = a.getRank(), groups = getGroups();
  if (groups < 1)
    return emitOpError() << "[matmul-C2] expected groups of at least 1, got "
                         << groups;
  int64_t heads = a.getDimSize(rank - 3);
  if (!ShapedType::isDynamic(heads) && heads % groups != 0)
    return emitOpError() << "[matmul-C2] expected groups to divide the "
                         << heads << " heads of a, got " << groups;
  int64_t bHeads = ShapedType::isDynamic(heads) ? heads : heads / groups;
  if (failed(expectDim(*this, "matmul-C3", "heads of b", b.getDimSize(rank - 3),
                       bHeads)))
    return failure();
  for (int64_t i = 0; i < rank - 3; ++i)
    if (failed(expectDim(*this, "matmul-C4",
                         "batch dimension " + std::to_string(i) + " of b",
                         b.getDimSize(i), a.getDimSize(i))))
      return failure();
  int64_t bK = b.getDimSize(getTransposeB() ? rank - 1 : rank - 2);
  int64_t bN = b.getDimSize(getTransposeB() ? rank - 2 : rank - 1);
  if (failed(expectDim(*this, "matmul-C5", "the summed dimension of b", bK,
                       a.getDimSize(rank - 1))))
    return failure();
  SmallVector<int64_t> expected(a.getShape());
  expected.back() = bN;
  return expectShape(*this, "matmul-C6", "a result", getResult().getType(),
                     expected);
}

LogicalResult SplitOp::verify() {
  RankedTensorType x = getX().getType();
  if (failed(expectRankAtLeast(*this, "split-C1", "x", x, 1)))
    return failure();
  if (getParts().empty())
    return emitOpError() << "[split-C2] expected at least one part, got none";
  if (x.isDynamicDim(x.getRank() - 1))
    return emitOpError() << "[split-C1] expected a static last dimension, got "
                         << x;
  int64_t total = 0;
  for (auto [i, type] : llvm::enumerate(getParts().getTypes())) {
    auto part = cast<RankedTensorType>(type);
    std::string what = "part " + std::to_string(i);
    if (part.getRank() == 0 || part.isDynamicDim(part.getRank() - 1))
      return emitOpError() << "[split-C3] expected " << what
                           << " with a static last dimension, got " << part;
    SmallVector<int64_t> expected(x.getShape());
    expected.back() = part.getShape().back();
    if (failed(expectShape(*this, "split-C3", what, part, expected)))
      return failure();
    // Checked as it grows, so that the sum cannot overflow.
    if (part.getShape().back() > x.getShape().back() - total)
      return emitOpError() << "[split-C4] expected parts of together "
                           << x.getShape().back() << " channels, got more";
    total += part.getShape().back();
  }
  if (total != x.getShape().back())
    return emitOpError() << "[split-C4] expected parts of together "
                         << x.getShape().back() << " channels, got " << total;
  return success();
}

/// flat [..., T, H*D] and heads [..., H, T, D].
static LogicalResult verifyHeads(Operation *op, StringRef prefix,
                                 RankedTensorType flat,
                                 RankedTensorType heads) {
  std::string rule = (prefix + "-C1").str();
  if (failed(expectRankAtLeast(op, rule, "[..., T, H*D]", flat, 2)) ||
      failed(expectRank(op, rule, "[..., H, T, D]", heads, flat.getRank() + 1)))
    return failure();
  int64_t rank = flat.getRank();
  for (int64_t i = 0; i + 2 < rank; ++i)
    if (failed(expectDim(op, (prefix + "-C2").str(),
                         "batch dimension " + std::to_string(i),
                         heads.getDimSize(i), flat.getDimSize(i))))
      return failure();
  if (failed(expectDim(op, (prefix + "-C2").str(), "T",
                       heads.getDimSize(rank - 1), flat.getDimSize(rank - 2))))
    return failure();
  int64_t count = heads.getDimSize(rank - 2), dim = heads.getDimSize(rank);
  int64_t channels = flat.getDimSize(rank - 1);
  if (ShapedType::isDynamic(count) || ShapedType::isDynamic(dim))
    return op->emitOpError()
           << "[" << prefix << "-C3] expected static H and D, got " << heads;
  bool fits = !ShapedType::isDynamic(channels) &&
              (dim == 0 ? channels == 0
                        : channels % dim == 0 && channels / dim == count);
  if (!fits)
    return op->emitOpError()
           << "[" << prefix << "-C4] expected H*D channels with H = " << count
           << " and D = " << dim << ", got " << dimText(channels);
  return success();
}

LogicalResult SplitHeadsOp::verify() {
  return verifyHeads(*this, "split_heads", getX().getType(),
                     getResult().getType());
}

LogicalResult MergeHeadsOp::verify() {
  return verifyHeads(*this, "merge_heads", getResult().getType(),
                     getX().getType());
}

LogicalResult HeadPartOp::verify() {
  RankedTensorType x = getX().getType();
  if (!x.hasStaticShape() || x.getRank() == 0)
    return emitOpError() << "[head_part-C1] expected x of static shape and "
                            "rank 1 or more, got "
                         << x;
  int64_t axis = getAxis(), from = getFrom(), take = getTake(), of = getOf();
  if (axis < 0 || axis >= x.getRank())
    return emitOpError() << "[head_part-C2] expected an axis from 0 to "
                         << x.getRank() - 1 << ", got " << axis;
  if (of < 1 || x.getDimSize(axis) % of != 0)
    return emitOpError() << "[head_part-C3] expected heads that divide the "
                         << x.getDimSize(axis) << " indices of the axis, got "
                         << of;
  if (from < 0 || take < 1 || take > of || from > of - take)
    return emitOpError() << "[head_part-C4] expected a part within a head of "
                         << of << ", got " << take << " from " << from;
  SmallVector<int64_t> expected(x.getShape());
  expected[axis] = x.getDimSize(axis) / of * take;
  return expectShape(*this, "head_part-C5", "a result", getResult().getType(),
                     expected);
}

LogicalResult ArgmaxOp::verify() {
  RankedTensorType x = getX().getType();
  if (failed(expectRankAtLeast(*this, "argmax-C1", "x", x, 2)))
    return failure();
  return expectShape(*this, "argmax-C2", "a result", getResult().getType(),
                     x.getShape().drop_back());
}

//===----------------------------------------------------------------------===//
// Attention pieces
//===----------------------------------------------------------------------===//

LogicalResult RopeOp::verify() {
  RankedTensorType x = getX().getType();
  if (failed(expectRankAtLeast(*this, "rope-C4", "x", x, 3)))
    return failure();
  if (failed(expectDim(*this, "rope-C5", "the head size of x",
                       x.getShape().back(), getRope().getDim())))
    return failure();
  return expectDim(*this, "rope-C6", "the number of positions",
                   getPositions().getType().getDimSize(0),
                   x.getDimSize(x.getRank() - 2));
}

LogicalResult SoftmaxOp::verify() {
  return expectRankAtLeast(*this, "softmax-C1", "x", getX().getType(), 1);
}

LogicalResult LogSoftmaxOp::verify() {
  return expectRankAtLeast(*this, "log_softmax-C1", "x", getX().getType(), 1);
}

//===----------------------------------------------------------------------===//
// Stepping ops
//===----------------------------------------------------------------------===//

LogicalResult KVAppendOp::verify() {
  KVCacheType cache = getCache().getType();
  if (failed(expectShape(
          *this, "kv_append-C1", "keys", getKeys().getType(),
          {cache.getHeads(), ShapedType::kDynamic, cache.getHeadDim()})) ||
      failed(expectDim(*this, "kv_append-C2", "the number of positions",
                       getPositions().getType().getDimSize(0),
                       getKeys().getType().getDimSize(1))))
    return failure();
  return expectLayer(*this, "kv_append-C3", getLayer(), cache);
}

LogicalResult KVReadOp::verify() {
  KVCacheType cache = getCache().getType();
  if (failed(expectShape(
          *this, "kv_read-C1", "keys", getKeys().getType(),
          {cache.getHeads(), ShapedType::kDynamic, cache.getHeadDim()})))
    return failure();
  return expectLayer(*this, "kv_read-C2", getLayer(), cache);
}

LogicalResult RopeTableOp::verify() {
  return expectShape(
      *this, "rope_table-C1", "a result", getResult().getType(),
      {getPositions().getType().getDimSize(0), 2, getRope().getDim()});
}

LogicalResult RotateOp::verify() {
  RankedTensorType x = getX().getType();
  if (failed(expectRankAtLeast(*this, "rotate-C1", "x", x, 3)))
    return failure();
  if (!x.isDynamicDim(x.getRank() - 1) && x.getShape().back() % 2 != 0)
    return emitOpError() << "[rotate-C2] expected an even head size, got "
                         << x.getShape().back();
  if (failed(
          expectShape(*this, "rotate-C3", "a table", getTable().getType(),
                      {x.getDimSize(x.getRank() - 2), 2, x.getShape().back()})))
    return failure();
  return expectRotary(*this, "rotate-C4", getRotaryAttr(),
                      getTable().getType().getDimSize(2));
}
