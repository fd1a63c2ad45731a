//===- Weights.h - where the evaluator's weights come from ------*- C++ -*-===//
//
// A weight is an `ml_program.global`. One with a dense value brings its own
// elements; one that is `#ml_program.extern` is asked of a WeightSource.
// Quantised storage means its dequantised values.
//
//===----------------------------------------------------------------------===//

#ifndef GPTC_REFERENCE_WEIGHTS_H
#define GPTC_REFERENCE_WEIGHTS_H

#include "gptc/Checkpoint/Checkpoint.h"
#include "gptc/Reference/Tensor.h"
#include "mlir/Dialect/MLProgram/IR/MLProgram.h"
#include "mlir/Support/LLVM.h"
#include <map>
#include <string>

namespace gptc::reference {

class WeightSource {
public:
  virtual ~WeightSource();
  /// The value of an extern global. A failure has been reported at the global.
  virtual mlir::FailureOr<TensorRef>
  load(mlir::ml_program::GlobalOp global) = 0;
};

/// Weights that the host hands over, by the global's symbol name.
class NamedWeights : public WeightSource {
public:
  NamedWeights() = default;
  explicit NamedWeights(std::map<std::string, TensorRef> tensors)
      : tensors(std::move(tensors)) {}
  mlir::FailureOr<TensorRef> load(mlir::ml_program::GlobalOp global) override;

private:
  std::map<std::string, TensorRef> tensors;
};

/// Weights of a checkpoint, found by the global's `gpt.stored` attribute. Each
/// tensor is dequantised once and kept (8 bytes an element). A global whose
/// attribute names no file is asked of `host`. The checkpoint must outlive it.
class CheckpointWeights : public WeightSource {
public:
  explicit CheckpointWeights(const checkpoint::Checkpoint &checkpoint,
                             WeightSource *host = nullptr)
      : checkpoint(checkpoint), host(host) {}
  mlir::FailureOr<TensorRef> load(mlir::ml_program::GlobalOp global) override;

private:
  const checkpoint::Checkpoint &checkpoint;
  WeightSource *host;
  std::map<std::string, TensorRef> loaded;
};

} // namespace gptc::reference

#endif // GPTC_REFERENCE_WEIGHTS_H
