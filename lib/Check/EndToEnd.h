//===- EndToEnd.h - a whole run against the graph as written ----*- C++ -*-===//
//
// The package runs with a KernelChecker watching; then the function of the
// graph is evaluated in double and, for the bound, in the package's precision.
//
//===----------------------------------------------------------------------===//

#ifndef GPTC_LIB_CHECK_ENDTOEND_H
#define GPTC_LIB_CHECK_ENDTOEND_H

#include "CheckedModel.h"
#include "KernelChecker.h"

namespace gptc::check {

struct OutputReport {
  std::string name;
  std::vector<int64_t> shape;
  Difference difference;
};

class EndToEnd {
public:
  EndToEnd(CheckedModel &model, const host::Package &package, int64_t threads);

  /// The logits of every position of @forward: all tokens but the last are one
  /// step, the last is another (prefill and decode). Returns an exit status;
  /// anything but 0 has been diagnosed.
  int steps(llvm::ArrayRef<int32_t> tokens);
  /// An entry with the named tensors of an .npz file, likewise.
  int entry(const std::string &name, const std::string &inputs);

  const std::vector<OutputReport> &outputs() const { return results; }
  const KernelChecker &kernels() const { return checker; }

private:
  std::optional<gptc_model *> openModel(std::string &error);
  /// Opens model and session; false with a message.
  bool open(int64_t tokens, std::string &error);
  /// `cached`: what keys and values are rounded to before they are used.
  int evaluate(mlir::func::FuncOp function,
               llvm::ArrayRef<reference::TensorRef> args,
               reference::Precision cached, reference::Results &exact,
               reference::Results &plain);

  CheckedModel &model;
  const host::Package &package;
  int64_t threads;
  KernelChecker checker;
  std::optional<host::Handle<gptc_model>> opened;
  std::optional<host::Handle<gptc_session>> session;
  std::vector<OutputReport> results;
};

} // namespace gptc::check

#endif // GPTC_LIB_CHECK_ENDTOEND_H
