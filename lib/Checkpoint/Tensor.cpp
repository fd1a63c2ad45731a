//===- Tensor.cpp - One tensor of a checkpoint ----------------------------===//

#include "gptc/Checkpoint/Tensor.h"
#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace gptc::checkpoint;

bool gptc::checkpoint::isShapeOf(const std::vector<int64_t> &stored,
                                 const std::vector<int64_t> &wanted) {
  if (stored.size() < wanted.size())
    return false;
  auto begin = stored.end() - wanted.size();
  return std::all_of(stored.begin(), begin,
                     [](int64_t size) { return size == 1; }) &&
         std::equal(begin, stored.end(), wanted.begin());
}

std::string gptc::checkpoint::shapeText(const std::vector<int64_t> &shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

bool gptc::checkpoint::sameNumbers(const TensorInfo &a, const TensorInfo &b) {
  return a.shape == b.shape && a.storage == b.storage &&
         (a.data == b.data || std::memcmp(a.data, b.data, a.bytes) == 0);
}

Expected<uint64_t>
gptc::checkpoint::tensorBytes(Storage storage,
                              const std::vector<int64_t> &shape) {
  for (int64_t dim : shape)
    if (dim < 0)
      return Error{
          fmt::format("shape {} has a negative dimension", shapeText(shape))};

  size_t block = blockElements(storage);
  int64_t innermost = shape.empty() ? 1 : shape.back();
  if (innermost % static_cast<int64_t>(block) != 0)
    return Error{fmt::format("expected an innermost dimension that is a "
                             "multiple of {} for {}, got shape {}",
                             block, storageName(storage), shapeText(shape))};

  // Bytes of the innermost row, times the other dimensions. A zero dimension
  // makes the product 0, but must not hide an overflow of the others.
  int64_t bytes = 1;
  bool fits = !__builtin_mul_overflow(innermost / static_cast<int64_t>(block),
                                      static_cast<int64_t>(blockBytes(storage)),
                                      &bytes);
  bool empty = innermost == 0;
  if (empty)
    bytes = 1;
  for (size_t i = 0; fits && i + 1 < shape.size(); ++i) {
    if (shape[i] == 0)
      empty = true;
    else
      fits = !__builtin_mul_overflow(bytes, shape[i], &bytes);
  }
  if (!fits)
    return Error{fmt::format("shape {} of {} takes more than 2^63 bytes",
                             shapeText(shape), storageName(storage))};
  return static_cast<uint64_t>(empty ? 0 : bytes);
}
