//===- BaseGraph.h - a random GPT, plainly spelled --------------*- C++ -*-===//
//
// A seed decides what the model computes: its norms, its attention, its MLP,
// its sizes. Every part is written in the one spelling that a paper would use;
// Respell.h changes the spelling and not the meaning. Some values in between
// are returned besides the result.
//
// B batch, T tokens, C channels, V vocabulary, H query heads, G KV heads, D
// head size, F channels of the MLP.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "Choice.h"
#include "gptc/Dialect/Gpt/Gpt.h"
#include "gptc/Reference/Weights.h"
#include "mlir/IR/OwningOpRef.h"
#include <map>
#include <string>

namespace gptc::fuzz {

/// Weights by symbol name, as made and as respelled.
using Weights = std::map<std::string, reference::TensorRef>;

struct Recipe {
  /// What the function takes: tokens of any number (which can be stepped),
  /// tokens of a fixed number, activations [T, C], or [B, T, C].
  enum class Kind { Step, Static, Rows, Batch };
  enum class Positions { None, Learned, Rope, Alibi };
  enum class Norm { Layer, LayerNoBeta, Rms };
  enum class Order { Pre, Post, Parallel, Sandwich };
  enum class Mask { None, Additive, AdditiveByHead, Boolean, Filled, Padding };
  enum class Activation { GeluErf, GeluTanh, GeluQuick, Silu, Relu, Tanh };

  Kind kind;
  int64_t B, T, C, V, H, G, D, F, layers, context;
  Positions positions;
  gpt::RopePairs pairs;
  double base;
  int64_t rotary; // channels of a head that rotate
  bool llama3, headNorms;
  Norm norm;
  double eps;
  Order order;
  double scale;       // 0: none
  double softcap;     // 0: none
  int64_t window;     // 0: none
  bool causal, cross; // cross: keys and values of another sequence
  Mask mask;
  double fill;
  bool packed;    // one projection, then a split
  bool biases[6]; // of q, k, v, output, up and gate, down
  Activation activation;
  bool gated;
  double residualScale, embeddingScale; // 1: none
  bool tied;
  double logitCap, logitScale; // 0, 1: none
  bool argmax, logits;         // results: the argmax, the logits or both
  int64_t extras;              // further results
  uint64_t seed;               // of weights and of which values are returned
};

Recipe randomRecipe(Choice &choice);
/// On one line.
std::string describe(const Recipe &recipe);

/// A module of one function; its weights are added to `weights`.
mlir::OwningOpRef<mlir::ModuleOp>
buildBase(mlir::MLIRContext &context, const Recipe &recipe, Weights &weights);

/// The function of a module that has one.
mlir::func::FuncOp functionOf(mlir::ModuleOp module);

/// Loads a new weight at the beginning of the function.
mlir::Value addWeight(mlir::func::FuncOp function, Weights &weights,
                      llvm::StringRef name, reference::TensorRef tensor);

} // namespace gptc::fuzz
