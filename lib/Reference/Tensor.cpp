//===- Tensor.cpp - a value of the reference evaluator --------------------===//

#include "gptc/Reference/Tensor.h"
#include "Rules.h"

using namespace mlir;
using namespace gptc::reference;

int64_t Tensor::rows() const {
  int64_t product = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i)
    product *= shape[i];
  return product;
}

std::optional<int64_t>
gptc::reference::elementCount(llvm::ArrayRef<int64_t> shape) {
  // A zero extent makes any product 0, so look for one first.
  bool empty = false;
  for (int64_t extent : shape) {
    if (extent < 0)
      return std::nullopt;
    empty |= extent == 0;
  }
  if (empty)
    return 0;
  int64_t product = 1;
  for (int64_t extent : shape) {
    if (extent > maxElements / product)
      return std::nullopt;
    product *= extent;
  }
  return product;
}

std::string gptc::reference::shapeText(llvm::ArrayRef<int64_t> shape) {
  if (shape.empty())
    return "scalar";
  return llvm::join(
      llvm::map_range(shape,
                      [](int64_t extent) { return std::to_string(extent); }),
      "x");
}

TensorRef gptc::reference::makeTensor(std::vector<int64_t> shape,
                                      std::vector<double> data) {
  auto tensor = std::make_shared<Tensor>();
  tensor->shape = std::move(shape);
  tensor->data = std::move(data);
  return tensor;
}

std::shared_ptr<Tensor> gptc::reference::copyOf(const Tensor &tensor) {
  auto copy = std::make_shared<Tensor>(tensor);
  copy->among = nullptr;
  copy->block = 0;
  return copy;
}

TensorRef gptc::reference::makeInts(std::vector<int64_t> shape,
                                    std::vector<int64_t> ints) {
  auto tensor = std::make_shared<Tensor>();
  tensor->kind = Tensor::Kind::Int;
  tensor->shape = std::move(shape);
  tensor->ints = std::move(ints);
  return tensor;
}

TensorRef gptc::reference::makeCache(int64_t layers, int64_t heads,
                                     int64_t headDim) {
  auto tensor = std::make_shared<Tensor>();
  tensor->kind = Tensor::Kind::Cache;
  tensor->cache = std::make_shared<KVCache>(layers, heads, headDim);
  return tensor;
}

//===----------------------------------------------------------------------===//
// Helpers of the rules
//===----------------------------------------------------------------------===//

const TensorRef &Call::ref(Value value) const {
  // An SSA value given twice holds the same tensor twice.
  for (auto [operand, tensor] : llvm::zip(op->getOperands(), operands))
    if (operand == value)
      return tensor;
  llvm_unreachable("not an operand of the op");
}

std::shared_ptr<Tensor>
gptc::reference::allocate(Operation *op, llvm::ArrayRef<int64_t> shape) {
  std::optional<int64_t> count = elementCount(shape);
  if (!count) {
    op->emitError("expected at most ")
        << maxElements << " elements in a tensor, got shape "
        << shapeText(shape);
    return nullptr;
  }
  auto tensor = std::make_shared<Tensor>();
  tensor->shape.assign(shape.begin(), shape.end());
  tensor->data.assign(*count, 0.0);
  return tensor;
}

LogicalResult gptc::reference::expectExtent(Operation *op, int64_t got,
                                            int64_t expected,
                                            const llvm::Twine &what) {
  if (got == expected)
    return success();
  return op->emitError("expected ")
         << expected << " " << what << ", got " << got;
}

TensorRef gptc::reference::constantTensor(Operation *op, Attribute value) {
  if (auto number = dyn_cast<FloatAttr>(value))
    return makeTensor({}, {number.getValueAsDouble()});
  if (auto number = dyn_cast<IntegerAttr>(value))
    // An i1 `true` is 1 here, not -1.
    return makeInts({}, {number.getType().isInteger(1)
                             ? (number.getValue().isZero() ? 0 : 1)
                             : number.getValue().getSExtValue()});

  auto dense = dyn_cast<DenseElementsAttr>(value);
  if (!dense) {
    op->emitError("expected a number or dense elements as value, got ")
        << value;
    return nullptr;
  }
  auto tensor = allocate(op, dense.getType().getShape());
  if (!tensor)
    return nullptr;
  Type element = dense.getElementType();
  if (isa<FloatType>(element)) {
    auto values = dense.getValues<APFloat>();
    for (auto [i, number] : llvm::enumerate(values))
      tensor->data[i] = number.convertToDouble();
    return tensor;
  }
  if (!element.isIntOrIndex()) {
    op->emitError("expected float or integer elements, got ") << element;
    return nullptr;
  }
  tensor->kind = Tensor::Kind::Int;
  tensor->ints.assign(tensor->data.size(), 0);
  tensor->data.clear();
  for (auto [i, number] : llvm::enumerate(dense.getValues<APInt>()))
    tensor->ints[i] = element.isInteger(1) ? (number.isZero() ? 0 : 1)
                                           : number.getSExtValue();
  return tensor;
}
