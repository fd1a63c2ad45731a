//===- GraphBuilder.h - Writes a forward pass as graph ops ------*- C++ -*-===//
//
// One call per op. Result types follow from the operands; T, the number of
// tokens, is the only dynamic dimension (a model with a source and a target has
// one of each). Every op's location is its value's short name around the prefix
// of the tensors it belongs to: loc("q.3"("h.3.attn")), from which printModel
// takes the SSA names.
//
// Shapes: B none, T tokens, C channels, H heads, D head size, V vocabulary.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_IMPORT_GRAPHBUILDER_H
#define GPTC_IMPORT_GRAPHBUILDER_H

#include "ModelInfo.h"
#include "Weights.h"
#include "gptc/Dialect/Gpt/Gpt.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OwningOpRef.h"

namespace gptc::importer {

class GraphBuilder {
public:
  /// A module with `weights` as globals and an open @forward.
  GraphBuilder(mlir::MLIRContext &context, const std::vector<Weight> &weights,
               int64_t vocab);
  /// A module with `weights` as globals and no function yet.
  GraphBuilder(mlir::MLIRContext &context, const std::vector<Weight> &weights);

  /// An argument of an entry: tensor<?xi32>, tensor<?xi1>, tensor<?xCxf32>.
  struct Argument {
    enum Kind { Ids, Flags, Rows } kind;
    llvm::StringRef name;
    int64_t channels = 0; // of Rows
  };
  /// Opens an entry of named tensors; its arguments.
  llvm::SmallVector<mlir::Value> beginEntry(llvm::StringRef name,
                                            llvm::ArrayRef<Argument> arguments);
  /// Closes it: it gives `result` under this name.
  void endEntry(llvm::StringRef name, mlir::Value result);
  /// The module, once all entries are closed.
  mlir::OwningOpRef<mlir::ModuleOp> take() { return std::move(module); }

  /// Where the next ops belong: a tensor prefix, and the layer's number (or -1)
  /// that ends their SSA names.
  void enter(llvm::StringRef tensorPrefix, int64_t layer = -1,
             llvm::StringRef valuePrefix = "");

  mlir::Value tokens() { return tokenIds; }
  mlir::Value load(llvm::StringRef name, Weight weight);
  /// Null for null.
  mlir::Value loadIfAny(llvm::StringRef name, Weight weight);

  mlir::Value positions(llvm::StringRef name, mlir::Value ids);
  mlir::Value embedding(llvm::StringRef name, mlir::Value table,
                        mlir::Value ids);
  /// `sample`: divided by the sample standard deviation plus eps.
  mlir::Value layerNorm(llvm::StringRef name, mlir::Value x, mlir::Value gamma,
                        mlir::Value beta, double eps, bool sample = false);
  mlir::Value rmsNorm(llvm::StringRef name, mlir::Value x, mlir::Value gamma,
                      double eps);
  /// `bias` may be null; `inOut`: the weight is [in, out].
  mlir::Value linear(llvm::StringRef name, mlir::Value x, mlir::Value weight,
                     mlir::Value bias, bool inOut = false);
  /// Equal parts of the last dimension.
  llvm::SmallVector<mlir::Value> split(llvm::StringRef name, mlir::Value x,
                                       int64_t parts);
  llvm::SmallVector<mlir::Value> split(llvm::StringRef name, mlir::Value x,
                                       llvm::ArrayRef<int64_t> sizes);
  mlir::Value splitHeads(llvm::StringRef name, mlir::Value x, int64_t heads);
  mlir::Value mergeHeads(llvm::StringRef name, mlir::Value x);
  mlir::Value rope(llvm::StringRef name, mlir::Value x, mlir::Value positions,
                   gpt::RopeAttr rope);
  mlir::Value activation(llvm::StringRef name, Activation kind, mlir::Value x);
  mlir::Value relu(llvm::StringRef name, mlir::Value x);
  mlir::Value scale(llvm::StringRef name, mlir::Value x, double factor);
  mlir::Value selectRows(llvm::StringRef name, mlir::Value x, mlir::Value rows);
  mlir::Value logSoftmax(llvm::StringRef name, mlir::Value x);
  mlir::Value add(llvm::StringRef name, mlir::Value a, mlir::Value b);
  mlir::Value softcap(llvm::StringRef name, mlir::Value x, double cap);
  /// A vector of this number.
  mlir::Value constant(llvm::StringRef name, int64_t size, double number);
  mlir::Value multiply(llvm::StringRef name, mlir::Value a, mlir::Value b);
  /// Causal attention of [H, T, D] over [H / groups, T, D], spelled out;
  /// [H, T, D]. `scale` 1 is left out. With `window` a query sees that many
  /// keys at most, its own among them.
  mlir::Value attention(mlir::Value q, mlir::Value k, mlir::Value v,
                        double scale, int64_t groups,
                        std::optional<int64_t> window = std::nullopt,
                        std::optional<double> softcapAt = std::nullopt);
  /// Attention of [H, T, D] over the keys [H, S, D] that a mask [S] shows;
  /// where it shows none, an even mixture of all.
  mlir::Value maskedAttention(mlir::Value q, mlir::Value k, mlir::Value v,
                              mlir::Value mask, double scale);

  /// Returns the logits and gives the module away.
  mlir::OwningOpRef<mlir::ModuleOp> finish(mlir::Value logits);

private:
  mlir::Location at(llvm::StringRef name);
  mlir::RankedTensorType tensorOf(llvm::ArrayRef<int64_t> shape);
  mlir::Value matmul(llvm::StringRef name, mlir::Value a, mlir::Value b,
                     bool transposeB, int64_t groups);

  mlir::OpBuilder builder;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp function; // the open one
  mlir::Value tokenIds;
  std::string prefix = "forward";
  std::string stem, suffix;
};

} // namespace gptc::importer

#endif // GPTC_IMPORT_GRAPHBUILDER_H
