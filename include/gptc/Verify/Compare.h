//===- Compare.h - how far a result may be from its meaning -----*- C++ -*-===//
//
// The one rule of gptc-check and --verify-fusions. The bound of a result tensor
// is derived, not chosen: twice the largest error of the plain computation in
// f32 (Precision::Single of the reference, or one that also rounds the inputs
// of products of matrices) on the same operands, plus a floor of a few units in
// the last place of its largest element. The factor covers another order of
// summation; the floor covers tensors so small that the plain computation was
// lucky, and polynomials of exp and its kin, which are right to a few units.
// How badly an operand's own rounding shows (the condition) is in the plain
// error where the operands of the exact computation are not f32. A result that
// lies in memory in 16 bits has been rounded once more: half of the last place
// of its largest element.
//
//===----------------------------------------------------------------------===//

#ifndef GPTC_VERIFY_COMPARE_H
#define GPTC_VERIFY_COMPARE_H

#include "gptc/Reference/Evaluator.h"
#include "gptc/Reference/Tensor.h"
#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <vector>

namespace gptc::verify {

/// Units in the last place of the largest element that any result may be off.
constexpr double ulpFloor = 8;

struct Difference {
  /// Largest |actual - exact|. NaN as soon as one element is NaN; infinite when
  /// only one side is.
  double error = 0.0;
  double bound = 0.0;
  /// Root mean square of the finite elements of the exact result, and the
  /// largest of them.
  double rms = 0.0, largest = 0.0;
  /// Where the largest error is, and what stood there.
  int64_t index = 0;
  double exact = 0.0, actual = 0.0;

  /// False for NaN.
  bool ok() const { return error <= bound; }
  /// Error in units of the rms; 0 for no error.
  double relative() const;
  /// Error in units of the last place of the largest element.
  double ulps() const;
  /// Whether this is farther out of (or nearer to) its bound than `other`.
  bool worseThan(const Difference &other) const;
};

/// All elements as double, whatever their kind.
std::vector<double> elementsOf(const reference::Tensor &tensor);

/// The three have one size. `exact` and `plain` are the reference's result in
/// double and in the precision of the plain computation; `stored` is that to
/// which `actual` was rounded when it was written.
Difference compare(llvm::ArrayRef<double> exact, llvm::ArrayRef<double> plain,
                   llvm::ArrayRef<double> actual,
                   reference::Precision stored = reference::Precision::Single);

/// The same of tensors. Integers have no bound: each is the one of `exact`, or
/// of `plain` where rounding makes another one. But what argmax chose has the
/// bound of the numbers among which it did: a column is judged by the number
/// that the reference has there, which must reach the largest one within it
/// (that is what the difference then holds). Where both precisions chose among
/// the same tensor, and among nothing but NaN or -inf, no rounding excuses
/// another column.
Difference compare(const reference::Tensor &exact,
                   const reference::Tensor &plain,
                   llvm::ArrayRef<double> actual,
                   reference::Precision stored = reference::Precision::Single);

} // namespace gptc::verify

#endif // GPTC_VERIFY_COMPARE_H
