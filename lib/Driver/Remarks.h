//===- Remarks.h - what the passes say about their work ---------*- C++ -*-===//
//
// Collects MLIR's remarks while passes run, and shows them with the place and
// the ops of the model that they are about: as lines, and as the YAML that
// LLVM's remark tools read.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include <string>
#include <vector>

namespace gptc {

/// The ops of a module by number. `number` marks their locations; passes keep
/// the locations of what they fuse, so a fused op leads back to its ops.
class SourceOps {
public:
  /// Marks the ops of all functions but constants, weights and terminators.
  /// Places and names stay.
  static void number(mlir::ModuleOp module);

  /// Finds the marked ops of a module, which must live as long as this.
  explicit SourceOps(mlir::ModuleOp module);

  /// The ops that `location` is fused of, in the order of the module.
  std::vector<mlir::Operation *> at(mlir::Location location) const;
  /// All ops of a function in order.
  llvm::ArrayRef<mlir::Operation *> of(llvm::StringRef function) const;

private:
  llvm::StringMap<std::vector<mlir::Operation *>> functions;
  llvm::DenseMap<int64_t, mlir::Operation *> ops;
};

/// "gpt.linear %q", or the op's name alone if the model names no result.
std::string opText(mlir::Operation *op);
/// "file:line:column" of the first place in `location`; "" if it has none.
std::string placeText(mlir::Location location);

struct FusionRemark {
  bool passed;
  std::string category, fusion, function, text;
  mlir::Location location;
  size_t number; ///< in the order of the passes' work
};

class Remarks {
public:
  /// Has the context's passes report here. Call once, before they run.
  void collect(mlir::MLIRContext &context);

  /// Puts the remarks of each pass into the order of the model's text.
  void sort();
  const std::vector<FusionRemark> &all() const { return remarks; }
  /// "file:line:column: remark: fusion: missed: text; gpt.linear %q", one a
  /// line, of one category.
  std::string lines(llvm::StringRef category, const SourceOps &ops) const;
  /// As LLVM's optimisation records: "--- !Missed" and its fields.
  std::string yaml(const SourceOps &ops) const;

private:
  std::vector<FusionRemark> remarks;
};

} // namespace gptc
