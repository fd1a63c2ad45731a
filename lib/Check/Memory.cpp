//===- Memory.cpp - numbers of 16 and 32 bits as double -------------------===//

#include "Memory.h"
#include "llvm/ADT/APFloat.h"

using namespace gptc::check;

template <typename T> static T wordAt(const void *at) {
  T word;
  std::memcpy(&word, at, sizeof(T));
  return word;
}

double gptc::check::numberAt(const void *at, gptc_dtype dtype) {
  if (dtype == GPTC_I32)
    return wordAt<int32_t>(at);
  if (dtype == GPTC_F32)
    return wordAt<float>(at);
  return llvm::APFloat(dtype == GPTC_F16 ? llvm::APFloat::IEEEhalf()
                                         : llvm::APFloat::BFloat(),
                       llvm::APInt(16, wordAt<uint16_t>(at)))
      .convertToDouble();
}

std::optional<std::vector<double>>
Memory::numbers(const void *from, size_t count, gptc_dtype dtype) const {
  const size_t size = bytesOf(dtype);
  std::vector<char> bytes(count * size);
  if (!read(bytes.data(), from, bytes.size()))
    return std::nullopt;
  std::vector<double> result(count);
  for (size_t i = 0; i < count; ++i)
    result[i] = numberAt(&bytes[i * size], dtype);
  return result;
}
