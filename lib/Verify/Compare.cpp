//===- Compare.cpp - how far a result may be from its meaning -------------===//

#include "gptc/Verify/Compare.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace gptc::verify;
using gptc::reference::Precision;
using gptc::reference::Tensor;

/// 0 for equal infinities; NaN if either is NaN.
static double distance(double a, double b) {
  return a == b ? 0.0 : std::fabs(a - b);
}

static constexpr double ulp = std::numeric_limits<float>::epsilon();

double Difference::relative() const { return error == 0 ? 0 : error / rms; }

double Difference::ulps() const {
  return error == 0 ? 0 : error / (ulp * largest);
}

bool Difference::worseThan(const Difference &other) const {
  if (ok() != other.ok())
    return !ok();
  if (std::isnan(error) || std::isnan(other.error))
    return std::isnan(error) && !std::isnan(other.error);
  // By multiplication, so that a bound of 0 is no special case.
  return error * other.bound > other.error * bound;
}

std::vector<double> gptc::verify::elementsOf(const Tensor &tensor) {
  std::vector<double> elements(tensor.elements());
  for (size_t i = 0; i < elements.size(); ++i)
    elements[i] = tensor.at(static_cast<int64_t>(i));
  return elements;
}

/// What f32 cannot hold is infinite in f32: that is its right value.
static double inF32(double value) {
  return std::fabs(value) > std::numeric_limits<float>::max()
             ? static_cast<double>(static_cast<float>(value))
             : value;
}

/// The same of an element of 16 bits.
static double held(double value, Precision stored) {
  double f32 = inF32(value), rounded = roundedInput(stored, f32);
  return std::isinf(rounded) ? rounded : f32;
}

Difference gptc::verify::compare(llvm::ArrayRef<double> exact,
                                 llvm::ArrayRef<double> plain,
                                 llvm::ArrayRef<double> actual,
                                 Precision stored) {
  Difference result;
  double squares = 0.0, plainError = 0.0;
  int64_t finite = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    double value = held(exact[i], stored);
    if (std::isfinite(value)) {
      ++finite;
      result.largest = std::max(result.largest, std::fabs(value));
      squares += value * value;
      // An overflow of the plain computation allows nothing.
      if (double off = distance(plain[i], value); std::isfinite(off))
        plainError = std::max(plainError, off);
    }
    double off = distance(actual[i], value);
    if (std::isnan(result.error) || off <= result.error)
      continue;
    result.error = off;
    result.index = static_cast<int64_t>(i);
    result.exact = value;
    result.actual = actual[i];
  }
  result.rms = finite ? std::sqrt(squares / static_cast<double>(finite)) : 0.0;
  result.bound = 2 * plainError + ulpFloor * ulp * result.largest +
                 roundingError(stored, result.largest);
  return result;
}

/// Integers that nothing but rounding makes others.
static Difference compareInts(llvm::ArrayRef<double> exact,
                              llvm::ArrayRef<double> plain,
                              llvm::ArrayRef<double> actual) {
  std::vector<double> right(exact);
  for (size_t i = 0; i < right.size(); ++i)
    if (actual[i] == plain[i])
      right[i] = plain[i];
  Difference result = compare(right, right, actual);
  result.bound = 0;
  return result;
}

/// Columns that argmax chose, by the numbers of the reference.
static Difference compareColumns(const Tensor &exact,
                                 llvm::ArrayRef<double> actual, double bound) {
  const Tensor &among = *exact.among;
  int64_t N = among.columns(), P = (N + exact.block - 1) / exact.block;
  std::vector<double> largest, chosen;
  for (int64_t i = 0; i < exact.elements(); ++i) {
    int64_t row = i / P * N, first = i % P * exact.block;
    int64_t end = std::min(first + exact.block, N);
    auto numberAt = [&](double column) {
      return column >= first && column < end
                 ? inF32(among.data[row + static_cast<int64_t>(column)])
                 : NAN;
    };
    double best = numberAt(exact.ints[i]), got = numberAt(actual[i]);
    // A row of nothing but NaN, or -inf: no rounding excuses another column.
    if (std::isnan(best) || best == -INFINITY) {
      best = 0;
      got = actual[i] == exact.ints[i] ? 0 : NAN;
    }
    largest.push_back(best);
    chosen.push_back(got);
  }
  Difference result = compare(largest, largest, chosen);
  result.bound = bound;
  return result;
}

Difference gptc::verify::compare(const Tensor &exact, const Tensor &plain,
                                 llvm::ArrayRef<double> actual,
                                 Precision stored) {
  bool isInt = exact.kind == Tensor::Kind::Int;
  if (!exact.among || !plain.among || exact.among == plain.among)
    return isInt
               ? compareInts(elementsOf(exact), elementsOf(plain), actual)
               : compare(elementsOf(exact), elementsOf(plain), actual, stored);
  const std::vector<double> &numbers = plain.among->data;
  double bound = compare(exact.among->data, numbers, numbers).bound;
  if (isInt)
    return compareColumns(exact, actual, bound);
  Difference result = compare(elementsOf(exact), elementsOf(plain), actual);
  result.bound = bound;
  return result;
}
