//===- Compare.cpp - how far a result may be from its meaning -------------===//

#include "gptc/Verify/Compare.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace gptc::verify;

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

std::vector<double> gptc::verify::elementsOf(const reference::Tensor &tensor) {
  std::vector<double> elements(tensor.elements());
  for (size_t i = 0; i < elements.size(); ++i)
    elements[i] = tensor.at(static_cast<int64_t>(i));
  return elements;
}

Difference gptc::verify::compare(llvm::ArrayRef<double> exact,
                                 llvm::ArrayRef<double> plain,
                                 llvm::ArrayRef<double> actual) {
  Difference result;
  double squares = 0.0, plainError = 0.0;
  int64_t finite = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    // What f32 cannot hold is infinite in f32: that is its right value.
    double value = exact[i];
    if (std::fabs(value) > std::numeric_limits<float>::max())
      value = static_cast<double>(static_cast<float>(value));
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
  result.bound = 2 * plainError + ulpFloor * ulp * result.largest;
  return result;
}
