//===- Numpy.cpp - Fuzzes the .npy and .npz readers -----------------------===//
#include "Fuzz.h"
#include "gptc/Runtime/Host/Npy.h"

using namespace gptc::host;

static void requireSound(const Array &array) {
  size_t count = 1;
  for (int64_t size : array.shape)
    fuzz::require(size >= 0 &&
                      !__builtin_mul_overflow(count, size_t(size), &count),
                  "the product of the sizes fits");
  fuzz::require(array.data.size() == count * 4, "an array has its elements");
  fuzz::require(array.shape.size() <= 8, "at most 8 dimensions");
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string error;
  if (auto array = parseNpy({data, size}, error))
    requireSound(*array);
  else
    fuzz::requireMessage(error);
  error.clear();
  auto arrays = parseNpz({data, size}, error);
  if (!arrays) {
    fuzz::requireMessage(error);
    return 0;
  }
  for (const Array &array : *arrays)
    requireSound(array);
  auto again = parseNpz(serializeNpz(*arrays), error);
  fuzz::require(again && again->size() == arrays->size(),
                "what was read can be written and read");
  return 0;
}
