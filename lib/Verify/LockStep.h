//===- LockStep.h - a function beside the one it was made of ----*- C++ -*-===//
//
// Two functions and the values of the first on some arguments. The second is
// evaluated op by op; a value of it that is, number for number, a value of the
// first takes its exact numbers, so that no error is carried on. So every op
// that the pass left as it was is known without being evaluated, and what it
// made is judged alone: the ops from known values to a fused op on the one
// side, those from the same values to the same result on the other.
//
// A fused op whose result is no value of the first function is not wrong yet:
// it is judged with the ops that use it, at last with the function's results.
//
//===----------------------------------------------------------------------===//

#ifndef GPTC_LIB_VERIFY_LOCKSTEP_H
#define GPTC_LIB_VERIFY_LOCKSTEP_H

#include "Slices.h"
#include "gptc/Verify/VerifyFusions.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace gptc::verify {

/// A function and what it computes in double on some arguments.
struct Evaluated {
  mlir::func::FuncOp function;
  Values values;

  /// A failure has been diagnosed.
  mlir::LogicalResult run(llvm::ArrayRef<reference::TensorRef> args,
                          reference::WeightSource &weights);
};

class LockStep {
public:
  /// `before` has been run; `sequence` is the one that its cache holds.
  LockStep(const Evaluated &before, mlir::func::FuncOp after,
           reference::WeightSource &weights, llvm::StringRef fusion,
           int64_t sequence);

  /// Evaluates the second function. Its first arguments are those of the first
  /// function. A failure has been diagnosed.
  mlir::LogicalResult run(llvm::ArrayRef<reference::TensorRef> args);
  /// Whether a check failed that stands for an op before it. Then another run
  /// with `byPlace` finds the op: a value that is no one's is held to be meant
  /// as the one that was written where the op is said to come from.
  bool blamesOthers = false, byPlace = false;

  /// What the pass made, and the function's results.
  std::vector<FusionCheck> checks;
  Evaluated after;

private:
  /// A value of the function before; with its heads merged, if so.
  struct Known {
    mlir::Value value;
    bool merged = false;
  };
  struct Candidate {
    Known known;
    reference::TensorRef tensor;
  };
  struct Pair {
    mlir::Value after;
    Known before;
  };

  void addCandidates();
  /// The first value before that has the numbers of this one.
  mlir::Value first(mlir::Value value) const;
  /// The values before that have the numbers of `tensor`, as they are
  /// before with merged heads, the latest first; else the nearest one, if it is
  /// related.
  llvm::SmallVector<const Candidate *, 1>
  nearest(const reference::Tensor &tensor, bool related) const;
  /// The value before that was written where result `index` of `op` comes from.
  const Candidate *writtenAt(mlir::Operation *op, unsigned index) const;
  mlir::Operation *sameOp(mlir::Operation *op) const;
  /// From now on the numbers of all of them are equal.
  void unite(llvm::ArrayRef<const Candidate *> alike);
  void learn(mlir::Value value, Known known);
  mlir::LogicalResult visit(mlir::Operation *op);
  mlir::LogicalResult visitJudged(mlir::Operation *op);
  mlir::LogicalResult visitResults(mlir::Operation *terminator);
  Slice unfusedSlice(const Slice &fused, llvm::ArrayRef<mlir::Value> targets,
                     bool equal, bool &apart) const;
  Values ownNumbers(const Slice &fused, const Slice &unfused) const;
  /// Measures what `op` makes of what it should; nothing if there is nothing to
  /// measure.
  mlir::FailureOr<std::optional<FusionCheck>>
  judge(mlir::Operation *op, llvm::ArrayRef<Pair> pairs, llvm::StringRef made);
  void add(FusionCheck check, mlir::Operation *op, llvm::ArrayRef<Pair> pairs);
  mlir::LogicalResult measure(const Slice &fused, const Slice &unfused,
                              llvm::ArrayRef<Pair> pairs, const Values &given,
                              FusionCheck &check);
  reference::TensorRef tensorOf(const Known &known, const Values &values) const;

  const Evaluated &before;
  reference::Evaluator exact, plain;
  std::string fusion;
  int64_t sequence;
  llvm::DenseSet<mlir::Value> live; // before: depends on arguments
  std::vector<Candidate> candidates;
  llvm::DenseMap<mlir::Value, mlir::Value> firsts;
  llvm::DenseMap<mlir::Value, llvm::SmallVector<mlir::Value, 1>> equals;
  llvm::DenseMap<mlir::Value, Known> known;
  llvm::SmallVector<mlir::Operation *> open; // fused, not judged yet
};

/// "model.mlir:12:5 %q", or what there is of it.
std::string placeOf(mlir::Location location);

} // namespace gptc::verify

#endif // GPTC_LIB_VERIFY_LOCKSTEP_H
