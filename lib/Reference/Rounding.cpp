//===- Rounding.cpp - inputs of reduced precision -------------------------===//

#include "Rules.h"
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

using namespace gptc::reference;

namespace {
/// Significant bits (the leading one counts), the exponent of the smallest
/// normal number, and the largest number.
struct Format {
  int bits, leastExponent;
  double largest;
};
} // namespace

static Format formatOf(Precision precision) {
  switch (precision) {
  case Precision::BF16:
    return {8, -126, 0x1.fep127};
  case Precision::F16:
    return {11, -14, 65504};
  case Precision::TF32:
    return {11, -126, 0x1.ffcp127};
  default:
    return {53, -1022, std::numeric_limits<double>::max()};
  }
}

double gptc::reference::roundedInput(Precision precision, double x) {
  if (precision < Precision::TF32 || !std::isfinite(x))
    return x;
  const Format format = formatOf(precision);
  if (std::fabs(x) < std::ldexp(1.0, format.leastExponent)) {
    // Denormals have one quantum; a sum with a number whose last place that is
    // has nothing below it.
    double anchor =
        std::ldexp(1.5, format.leastExponent - (format.bits - 1) + 52);
    return std::copysign(x + anchor - anchor, x);
  }
  // Half of the last place, less one where that is even, carries into it.
  int drop = 53 - format.bits;
  auto word = std::bit_cast<uint64_t>(x);
  word += (uint64_t(1) << (drop - 1)) - 1 + (word >> drop & 1);
  word &= ~uint64_t(0) << drop;
  double rounded = std::bit_cast<double>(word);
  return std::fabs(rounded) > format.largest
             ? std::copysign(std::numeric_limits<double>::infinity(), x)
             : rounded;
}

double gptc::reference::roundingError(Precision precision, double magnitude) {
  if (precision < Precision::TF32)
    return 0;
  const Format format = formatOf(precision);
  int exponent = std::max(std::ilogb(std::min(magnitude, format.largest)),
                          format.leastExponent);
  return std::ldexp(1.0, exponent - format.bits);
}

llvm::ArrayRef<double> Rounding::inputs(llvm::ArrayRef<double> values,
                                        std::vector<double> &room) const {
  if (precision < Precision::TF32)
    return values;
  room.clear();
  for (double value : values)
    room.push_back(input(value));
  return room;
}

llvm::ArrayRef<double> Rounding::cachedInputs(llvm::ArrayRef<double> values,
                                              std::vector<double> &room) const {
  if (precision == Precision::Double || cached < Precision::TF32)
    return inputs(values, room);
  room.clear();
  for (double value : values)
    room.push_back(cachedInput(value));
  return room;
}

void gptc::reference::roundToBytes(std::vector<double> &values, int64_t count,
                                   int64_t length, int64_t step, int64_t next) {
  for (int64_t run = 0; run < count; ++run) {
    double *at = values.data() + run * next, largest = 0, finite = 0;
    for (int64_t i = 0; i < length; ++i) {
      largest = std::max(largest, std::fabs(at[i * step]));
      finite += at[i * step] * 0.0;
    }
    const double scale = largest / 127 + finite;
    for (int64_t i = 0; i < length; ++i)
      at[i * step] = largest > 0 || finite != 0
                         ? std::nearbyint(at[i * step] / scale) * scale
                         : 0;
  }
}
