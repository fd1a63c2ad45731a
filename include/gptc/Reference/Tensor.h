//===- Tensor.h - a value of the reference evaluator ------------*- C++ -*-===//
//
// Row-major, innermost dimension last. Every float type is held as double and
// every integer, index or i1 as int64. A scalar has an empty shape. A value of
// `!gpt.kv_cache` is a handle: all copies name one cache, written in place, as
// the threaded SSA value does.
//
//===----------------------------------------------------------------------===//

#ifndef GPTC_REFERENCE_TENSOR_H
#define GPTC_REFERENCE_TENSOR_H

#include "gptc/Reference/KVCache.h"
#include "mlir/IR/Operation.h"
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace gptc::reference {

struct Tensor {
  enum class Kind { Float, Int, Cache };

  Kind kind = Kind::Float;
  std::vector<int64_t> shape;
  /// Elements when kind is Float.
  std::vector<double> data;
  /// Elements when kind is Int.
  std::vector<int64_t> ints;
  /// When kind is Cache.
  std::shared_ptr<KVCache> cache;
  /// Of what argmax chose: the numbers [rows, N] among which, `block` columns
  /// of a row for each element (the last of a row may have fewer). An element
  /// is the largest of them if kind is Float, its column if Int. Rounding may
  /// choose another column; these numbers say whether it is as good.
  std::shared_ptr<const Tensor> among;
  int64_t block = 0;

  int64_t rank() const { return shape.size(); }
  /// Extent of dimension `i`, counted from the end when negative.
  int64_t dim(int64_t i) const { return shape[i < 0 ? i + rank() : i]; }
  int64_t elements() const {
    return kind == Kind::Int ? ints.size() : data.size();
  }
  /// Extent of the last dimension; 1 for a scalar.
  int64_t columns() const { return shape.empty() ? 1 : shape.back(); }
  /// Product of the other dimensions.
  int64_t rows() const;
  /// Element `i` of either kind; integers up to 2^53 are exact.
  double at(int64_t i) const {
    return kind == Kind::Int ? static_cast<double>(ints[i]) : data[i];
  }
};

/// Values are immutable once made and shared freely.
using TensorRef = std::shared_ptr<const Tensor>;

/// Elements that one tensor may have (8 GiB of double). A larger one is an
/// error at the op that asks for it, never an allocation.
constexpr int64_t maxElements = int64_t(1) << 30;

/// Product of `shape`; nothing when a dimension is negative or the product is
/// above maxElements.
std::optional<int64_t> elementCount(llvm::ArrayRef<int64_t> shape);

/// "5x64"; "scalar" for an empty shape.
std::string shapeText(llvm::ArrayRef<int64_t> shape);

/// `data` must have as many elements as `shape` says.
TensorRef makeTensor(std::vector<int64_t> shape, std::vector<double> data);
/// A copy that is to get other numbers: they are not what argmax chose.
std::shared_ptr<Tensor> copyOf(const Tensor &tensor);
TensorRef makeInts(std::vector<int64_t> shape, std::vector<int64_t> ints);
/// An empty cache for a `!gpt.kv_cache` of these extents.
TensorRef makeCache(int64_t layers, int64_t heads, int64_t headDim);

} // namespace gptc::reference

#endif // GPTC_REFERENCE_TENSOR_H
