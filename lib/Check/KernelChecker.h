//===- KernelChecker.h - every kernel call against its meaning --*- C++ -*-===//
//
// An observer of a session (gptc_api::observe). Each call is evaluated by the
// reference on the tensors that the package itself gave it, so that an error
// shows at the kernel that made it and not at those that follow. The bound is
// that of the arithmetic which the call's own launches do: those of a GPU round
// the inputs of GEMM and attention where the package's precision says so, but
// not for few rows. Results and appended rows that lie in memory in 16 bits are
// widened; their bound allows that rounding once.
//
// The reference has a KV cache of its own. What a call appends is compared with
// the package's pages, which then become what the reference's cache holds.
//
//===----------------------------------------------------------------------===//

#ifndef GPTC_LIB_CHECK_KERNELCHECKER_H
#define GPTC_LIB_CHECK_KERNELCHECKER_H

#include "Memory.h"
#include "gptc/Package/PackageModel.h"
#include "gptc/Reference/Evaluator.h"
#include "gptc/Runtime/gptc.h"
#include "gptc/Verify/Compare.h"
#include <string>
#include <vector>

namespace gptc::check {

using verify::compare;
using verify::Difference;
using verify::elementsOf;

struct KernelReport {
  std::string kernel;
  int64_t calls = 0;
  /// The call nearest to its bound, or farthest out of it.
  Difference worst;
  std::string entry;
  int64_t call = -1;
  /// "result 0", "appended keys".
  std::string what;
};

/// The plain computation whose products of matrices round their inputs so.
reference::Precision plainPrecision(InputPrecision inputs);
/// That to which what lies in memory as such elements has been rounded.
reference::Precision storedPrecision(gptc_dtype element);

class KernelChecker {
public:
  /// Both must outlive the checker; `weights` may be null.
  KernelChecker(const PackageModel &plan, reference::WeightSource *weights);

  /// `user` is the checker.
  static void observe(void *user, const gptc_event *event);

  /// Something could not be evaluated; it has been diagnosed.
  bool failed() const { return broken; }
  /// In the order of their first calls.
  const std::vector<KernelReport> &reports() const { return kernels; }

private:
  bool check(const gptc_event &event);
  /// Null after an error.
  reference::TensorRef operand(const PlannedCall &call, unsigned index,
                               const gptc_event &event);
  /// A tensor in the package's memory, `index` counting the kernel's arguments
  /// and then its results; null after an error.
  reference::TensorRef readTensor(const PlannedCall &call, unsigned index,
                                  mlir::Type type, const void *data,
                                  const gptc_event &event);
  reference::TensorRef weight(mlir::Value value);
  void add(const gptc_event &event, std::string what, const Difference &found);

  const PackageModel &plan;
  reference::WeightSource *weights;
  reference::Evaluator exact;
  reference::TensorRef cache;
  std::vector<KernelReport> kernels;
  bool broken = false;
};

} // namespace gptc::check

#endif // GPTC_LIB_CHECK_KERNELCHECKER_H
