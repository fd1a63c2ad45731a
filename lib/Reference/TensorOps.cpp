//===- TensorOps.cpp - the upstream tensor ops that graphs use ------------===//

#include "Rules.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include <limits>

using namespace mlir;
using namespace gptc::reference;

/// The same elements in another shape, or an error when their number differs.
static Outcome reshaped(Operation *op, const Tensor &from,
                        std::vector<int64_t> shape) {
  std::optional<int64_t> count = elementCount(shape);
  if (!count || *count != from.elements())
    return op->emitError("expected a shape of ")
           << from.elements() << " elements, got " << shapeText(shape);
  auto result = std::make_shared<Tensor>(from);
  result->shape = std::move(shape);
  return Results{result};
}

/// A float tensor of `value`, or its integer part where the type is integer.
static Outcome filled(Operation *op, llvm::ArrayRef<int64_t> shape,
                      const Tensor &value) {
  auto result = allocate(op, shape);
  if (!result)
    return failure();
  result->kind = value.kind;
  if (value.kind == Tensor::Kind::Int) {
    result->ints.assign(result->data.size(), value.ints[0]);
    result->data.clear();
  } else {
    llvm::fill(result->data, value.data[0]);
  }
  return Results{result};
}

/// Static extents of `type`, dynamic ones taken from `dynamic` in order.
static std::vector<int64_t> extents(ShapedType type, ValueRange dynamic,
                                    const Call &call) {
  std::vector<int64_t> shape = type.getShape().vec();
  size_t next = 0;
  for (int64_t &extent : shape)
    if (ShapedType::isDynamic(extent))
      extent = call[dynamic[next++]].ints[0];
  return shape;
}

/// Numbers of a mixed static and dynamic list.
static std::vector<int64_t> numbers(llvm::ArrayRef<OpFoldResult> mixed,
                                    const Call &call) {
  std::vector<int64_t> result;
  for (OpFoldResult entry : mixed)
    result.push_back(isa<Attribute>(entry)
                         ? getConstantIntValue(entry).value_or(-1)
                         : call[cast<Value>(entry)].ints[0]);
  return result;
}

Outcome gptc::reference::eval(tensor::DimOp op, const Call &call) {
  const Tensor &source = call[op.getSource()];
  int64_t index = call[op.getIndex()].ints[0];
  if (index < 0 || index >= source.rank())
    return op.emitError("expected a dimension below ")
           << source.rank() << ", got " << index;
  return Results{makeInts({}, {source.dim(index)})};
}

Outcome gptc::reference::eval(tensor::SplatOp op, const Call &call) {
  return filled(op, extents(op.getType(), op.getDynamicSizes(), call),
                call[op.getInput()]);
}

Outcome gptc::reference::eval(tensor::EmptyOp op, const Call &call) {
  // Undefined contents: NaN, so that a read of them shows.
  bool isInt = op.getType().getElementType().isIntOrIndex();
  TensorRef unset =
      isInt ? makeInts({}, {std::numeric_limits<int64_t>::min()})
            : makeTensor({}, {std::numeric_limits<double>::quiet_NaN()});
  return filled(op, extents(op.getType(), op.getDynamicSizes(), call), *unset);
}

Outcome gptc::reference::eval(tensor::CastOp op, const Call &call) {
  return Results{call.ref(op.getSource())};
}

Outcome gptc::reference::eval(tensor::ExtractOp op, const Call &call) {
  const Tensor &source = call[op.getTensor()];
  int64_t offset = 0;
  for (auto [d, index] : llvm::enumerate(op.getIndices())) {
    int64_t i = call[index].ints[0], extent = source.dim(d);
    if (i < 0 || i >= extent)
      return op.emitError("expected an index below ")
             << extent << " in dimension " << d << ", got " << i;
    offset = offset * extent + i;
  }
  if (source.kind == Tensor::Kind::Int)
    return Results{makeInts({}, {source.ints[offset]})};
  return Results{makeTensor({}, {source.data[offset]})};
}

Outcome gptc::reference::eval(tensor::CollapseShapeOp op, const Call &call) {
  const Tensor &source = call[op.getSrc()];
  std::vector<int64_t> shape;
  for (const auto &group : op.getReassociationIndices()) {
    int64_t product = 1;
    for (int64_t d : group)
      product *= source.dim(d);
    shape.push_back(product);
  }
  return reshaped(op, source, std::move(shape));
}

Outcome gptc::reference::eval(tensor::ExpandShapeOp op, const Call &call) {
  return reshaped(op, call[op.getSrc()],
                  numbers(op.getMixedOutputShape(), call));
}

/// Copies the box at `offsets`, `strides` of `source` to the box of the same
/// `sizes` at `origin` in `target`, dimension by dimension.
static void copyBox(const Tensor &source, llvm::ArrayRef<int64_t> offsets,
                    llvm::ArrayRef<int64_t> strides, Tensor &target,
                    llvm::ArrayRef<int64_t> origin,
                    llvm::ArrayRef<int64_t> sizes, size_t d = 0,
                    int64_t from = 0, int64_t to = 0) {
  if (d == sizes.size()) {
    if (source.kind == Tensor::Kind::Int)
      target.ints[to] = source.ints[from];
    else
      target.data[to] = source.data[from];
    return;
  }
  for (int64_t i = 0; i < sizes[d]; ++i)
    copyBox(source, offsets, strides, target, origin, sizes, d + 1,
            from * source.dim(d) + offsets[d] + i * strides[d],
            to * target.dim(d) + origin[d] + i);
}

/// Zeros of either kind.
static std::shared_ptr<Tensor> zeros(Operation *op, Tensor::Kind kind,
                                     llvm::ArrayRef<int64_t> shape) {
  auto result = allocate(op, shape);
  if (result && kind == Tensor::Kind::Int) {
    result->kind = kind;
    result->ints.assign(result->data.size(), 0);
    result->data.clear();
  }
  return result;
}

Outcome gptc::reference::eval(tensor::ExtractSliceOp op, const Call &call) {
  const Tensor &source = call[op.getSource()];
  auto offsets = numbers(op.getMixedOffsets(), call);
  auto sizes = numbers(op.getMixedSizes(), call);
  auto strides = numbers(op.getMixedStrides(), call);
  for (int64_t d = 0; d < source.rank(); ++d) {
    int64_t extent = source.dim(d);
    // Bounded one by one, so that the products below cannot overflow.
    bool inside =
        offsets[d] >= 0 && offsets[d] <= extent && sizes[d] >= 0 &&
        sizes[d] <= extent && strides[d] > 0 &&
        (sizes[d] <= 1 || strides[d] <= extent) &&
        (sizes[d] == 0 || offsets[d] + (sizes[d] - 1) * strides[d] < extent);
    if (!inside)
      return op.emitError("expected a slice within dimension ")
             << d << " of extent " << extent << ", got offset " << offsets[d]
             << ", size " << sizes[d] << ", stride " << strides[d];
  }
  auto result = zeros(op, source.kind, sizes);
  if (!result)
    return failure();
  copyBox(source, offsets, strides, *result,
          std::vector<int64_t>(sizes.size(), 0), sizes);
  // A rank-reducing slice drops unit dimensions, which moves no element.
  llvm::SmallBitVector dropped = op.getDroppedDims();
  std::vector<int64_t> shape;
  for (size_t d = 0; d < sizes.size(); ++d)
    if (!dropped.test(d))
      shape.push_back(sizes[d]);
  result->shape = std::move(shape);
  return Results{result};
}

Outcome gptc::reference::eval(tensor::ConcatOp op, const Call &call) {
  size_t along = op.getDim();
  std::vector<int64_t> shape = call.operands[0]->shape;
  shape[along] = 0;
  for (const TensorRef &part : call.operands) {
    for (size_t d = 0; d < shape.size(); ++d)
      if (d != along && failed(expectExtent(op, part->dim(d), shape[d],
                                            "extents of every part")))
        return failure();
    shape[along] += part->dim(along);
  }
  auto result = zeros(op, call.operands[0]->kind, shape);
  if (!result)
    return failure();
  std::vector<int64_t> origin(shape.size(), 0), ones(shape.size(), 1),
      offsets(shape.size(), 0);
  for (const TensorRef &part : call.operands) {
    copyBox(*part, offsets, ones, *result, origin, part->shape);
    origin[along] += part->dim(along);
  }
  return Results{result};
}
