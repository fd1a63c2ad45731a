//===- Weights.h - The stored tensors that a model claims -------*- C++ -*-===//
//
// A family claims every weight that its graph needs, with the shape that the
// hyperparameters imply, before it builds an op. Keeps the first error: a
// missing tensor, another shape, or a storage that holds no weights.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_IMPORT_WEIGHTS_H
#define GPTC_IMPORT_WEIGHTS_H

#include "gptc/Checkpoint/Checkpoint.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace gptc::importer {

using Weight = const checkpoint::TensorInfo *;

class Weights {
public:
  explicit Weights(const checkpoint::Checkpoint &checkpoint)
      : checkpoint(checkpoint) {}

  /// The tensor, which must have this shape; null, after an error, if it has
  /// not.
  Weight claim(const std::string &name, const std::vector<int64_t> &shape);
  /// Null, without an error, when the checkpoint has no such tensor.
  Weight claimIfStored(const std::string &name,
                       const std::vector<int64_t> &shape);
  /// The numbers of a vector that is a hyperparameter, not a weight: it becomes
  /// no global. Empty after an error.
  std::vector<float> numbers(const std::string &name, int64_t count);
  bool stored(const std::string &name) const {
    return checkpoint.find(name) != nullptr;
  }

  bool failed() const { return first.has_value(); }
  const checkpoint::Error &error() const { return *first; }
  void refuse(checkpoint::Error error);

  /// In the order of the claims, without repetition.
  const std::vector<Weight> &claimed() const { return list; }
  bool isClaimed(const checkpoint::TensorInfo &tensor) const {
    return members.contains(&tensor);
  }

  struct Wanted {
    std::string name;
    std::vector<int64_t> shape;
  };
  /// The claims of tensors that are not there, as far as they were made.
  const std::vector<Wanted> &missing() const { return absent; }
  /// Whether so much is missing that going on with further layers would tell
  /// nobody more. A family that goes on until then lists all that is missing,
  /// not only the first.
  bool hopeless() const { return absent.size() >= 200; }
  /// What the claim of a stored tensor expected instead; null for others.
  const std::string *whyUnfit(const checkpoint::TensorInfo &tensor) const;

private:
  /// Null, after an error, unless `name` is a tensor of weights of this shape.
  Weight check(const std::string &name, const std::vector<int64_t> &shape);

  const checkpoint::Checkpoint &checkpoint;
  std::vector<Weight> list;
  std::vector<Wanted> absent;
  std::unordered_map<Weight, std::string> unfit;
  std::unordered_set<Weight> members;
  std::optional<checkpoint::Error> first;
};

} // namespace gptc::importer

#endif // GPTC_IMPORT_WEIGHTS_H
