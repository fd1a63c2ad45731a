//===- Slices.cpp - parts of a function, evaluated ------------------------===//

#include "Slices.h"
#include "gptc/Dialect/Gpt/Gpt.h"
#include "gptc/Verify/Compare.h"
#include <cmath>

using namespace mlir;
using namespace gptc;
using namespace gptc::verify;
using namespace gptc::reference;

Slice gptc::verify::sliceOf(ValueRange targets,
                            llvm::function_ref<bool(Value)> isInput) {
  Slice slice;
  llvm::SetVector<Operation *> seen;
  llvm::SmallVector<Value> open(targets);
  while (!open.empty()) {
    Value value = open.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!op || isInput(value)) {
      slice.inputs.insert(value);
      continue;
    }
    if (seen.insert(op))
      llvm::append_range(open, op->getOperands());
  }
  slice.ops.assign(seen.begin(), seen.end());
  llvm::sort(slice.ops,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  return slice;
}

FailureOr<Results>
gptc::verify::evaluatePure(Evaluator &evaluator, Operation *op,
                           llvm::ArrayRef<TensorRef> operands) {
  bool writes = llvm::any_of(op->getResultTypes(), [](Type type) {
    return isa<gpt::KVCacheType>(type);
  });
  llvm::SmallVector<TensorRef> own(operands);
  if (writes)
    for (TensorRef &operand : own)
      if (operand && operand->kind == Tensor::Kind::Cache) {
        auto copy = std::make_shared<Tensor>(*operand);
        copy->cache = std::make_shared<KVCache>(*operand->cache);
        operand = std::move(copy);
      }
  return evaluator.evalOp(op, own);
}

LogicalResult gptc::verify::evaluateSlice(Evaluator &evaluator,
                                          const Slice &slice, Values &values) {
  for (Operation *op : slice.ops) {
    llvm::SmallVector<TensorRef> operands;
    for (Value operand : op->getOperands())
      operands.push_back(values.lookup(operand));
    FailureOr<Results> results = evaluatePure(evaluator, op, operands);
    if (failed(results))
      return failure();
    for (auto [value, tensor] : llvm::zip(op->getResults(), *results))
      values[value] = tensor;
  }
  return success();
}

TensorRef gptc::verify::roundedToF32(const TensorRef &tensor) {
  if (tensor->kind != Tensor::Kind::Float)
    return tensor;
  auto rounded = std::make_shared<Tensor>(*tensor);
  for (double &element : rounded->data)
    element = static_cast<float>(element);
  return rounded;
}

TensorRef gptc::verify::withMergedHeads(const Tensor &tensor) {
  auto merged = copyOf(tensor);
  int64_t rank = tensor.rank(), H = tensor.dim(-3), T = tensor.dim(-2),
          D = tensor.dim(-1);
  merged->shape.resize(rank - 3);
  merged->shape.insert(merged->shape.end(), {T, H * D});
  int64_t block = H * T * D;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    int64_t h = i % block / (T * D), t = i / D % T, d = i % D;
    int64_t to = i - i % block + (t * H + h) * D + d;
    if (tensor.kind == Tensor::Kind::Int)
      merged->ints[to] = tensor.ints[i];
    else
      merged->data[to] = tensor.data[i];
  }
  return merged;
}

double gptc::verify::distance(const Tensor &right, const Tensor &got,
                              double enough) {
  double largest = 0, off = 0;
  for (int64_t i = 0, e = right.elements(); i < e; ++i)
    if (double element = std::fabs(right.at(i)); std::isfinite(element))
      largest = std::max(largest, element);
  for (int64_t i = 0, e = right.elements(); i < e; ++i) {
    double a = right.at(i), b = got.at(i);
    if (a == b)
      continue;
    double each = std::fabs(a - b);
    if (!(each <= enough * largest))
      return INFINITY;
    off = std::max(off, each);
  }
  return off == 0 ? 0 : off / largest;
}

std::vector<double> gptc::verify::numbersOf(const Tensor &tensor,
                                            int64_t sequence) {
  if (tensor.kind != Tensor::Kind::Cache)
    return elementsOf(tensor);
  std::vector<double> numbers;
  const KVCache &cache = *tensor.cache;
  for (KVCache::Part part : {KVCache::Keys, KVCache::Values})
    for (int64_t layer = 0; layer < cache.layers(); ++layer)
      llvm::append_range(numbers, cache.rows(part, layer, sequence));
  return numbers;
}
