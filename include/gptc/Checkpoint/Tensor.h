//===- Tensor.h - One tensor of a checkpoint --------------------*- C++ -*-===//

#ifndef GPTC_CHECKPOINT_TENSOR_H
#define GPTC_CHECKPOINT_TENSOR_H

#include "gptc/Checkpoint/Error.h"
#include "gptc/Checkpoint/Storage.h"
#include <cstdint>
#include <string>
#include <vector>

namespace gptc::checkpoint {

struct TensorInfo {
  std::string name;
  Storage storage = Storage::F32;
  /// Row-major, outermost first, innermost last: GGUF's dimensions reversed.
  /// Empty for a scalar. Dimensions are not negative and their product fits.
  std::vector<int64_t> shape;
  /// Path of the file that it lies in.
  std::string file;
  /// From the start of the file, in bytes.
  uint64_t offset = 0;
  /// Exactly what shape and storage take.
  uint64_t bytes = 0;
  /// `bytes` bytes in the checkpoint's mapping, of any alignment: read through
  /// memcpy, never through a float pointer. Lives as long as the Checkpoint.
  const uint8_t *data = nullptr;
};

/// Whether a stored tensor of shape `stored` is a weight of shape `wanted`: the
/// same but for leading dimensions of 1, which a model's buffer of positions
/// has
/// ([1, T, C]).
bool isShapeOf(const std::vector<int64_t> &stored,
               const std::vector<int64_t> &wanted);

/// "[32, 8]", "[]" for a scalar.
std::string shapeText(const std::vector<int64_t> &shape);

/// Whether both have the same shape and storage and the same bytes, which are
/// read unless they lie in one place.
bool sameNumbers(const TensorInfo &a, const TensorInfo &b);

/// Bytes that a tensor of this shape takes. An Error (without file and tensor)
/// when a dimension is negative, the innermost one is not a whole number of
/// blocks, or the size does not fit in 63 bits.
Expected<uint64_t> tensorBytes(Storage storage,
                               const std::vector<int64_t> &shape);

} // namespace gptc::checkpoint

#endif // GPTC_CHECKPOINT_TENSOR_H
