//===- Import.h - From a checkpoint to a gpt graph --------------*- C++ -*-===//
//
// Reads the hyperparameters and tensor names of one model family and writes
// the forward pass down as a module of graph ops:
//
//   @forward(%tokens: tensor<?xi32>) -> tensor<?xVxf32> {gpt.result = "logits"}
//
// or, of an encoder-decoder, as two entries (AnnotatedTransformer.cpp).
//
// Weights become `ml_program.global`s under their stored names; no element is
// read, save of vectors that hold rotary factors, and of a head to see whether
// it is its embedding. Every tensor's presence, shape and storage is checked
// before the first op is built. Refuses, by name:
// other families, unknown activations and rotary scalings, quantisation schemes
// of config.json, mixtures of experts.
//
// Module attributes (all optional but name, checkpoint, context and vocab):
//   gpt.name           C identifier that the compiled package is named after
//   gpt.checkpoint     path of the checkpoint, relative to the written file's
//                      folder, or absolute
//   gpt.context        longest sequence, in tokens      (i64)
//   gpt.vocab          rows of the token embedding      (i64)
//   gpt.bos, gpt.eos   token ids                        (i64)
//   gpt.extra_ends     further ids that end generation  (array<i64>)
//   gpt.tokenizer      file of the checkpoint that holds the tokenizer
//   gpt.chat_template  the checkpoint's Jinja chat template
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_IMPORT_IMPORT_H
#define GPTC_IMPORT_IMPORT_H

#include "gptc/Checkpoint/Checkpoint.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include <optional>
#include <string>
#include <vector>

namespace gptc {

/// What becomes of a tensor.
struct TensorUse {
  enum Kind {
    Imported, // a weight of the graph
    Ignored,  // a mask, a rotary table, a tied head that is stored again
    Unused,   // the graph has no place for it
    Unfit,    // the graph needs it, but with another shape or storage
    Missing,  // the graph needs it, and the checkpoint does not have it
  };
  Kind kind = Imported;
  std::string name;
  /// The needed one where it is missing.
  std::vector<int64_t> shape;
  /// Nothing where it is missing.
  std::optional<checkpoint::Storage> storage;
  /// As stored.
  uint64_t bytes = 0;
  /// Why it is not imported.
  std::string why;
};

struct ImportOptions {
  /// A C identifier; empty: made from the checkpoint's file name.
  std::string name;
  /// The folder that the module will be written to, which `gpt.checkpoint` is
  /// relative to. Empty: `gpt.checkpoint` is absolute. It is absolute too when
  /// the two paths have nothing but the root in common.
  std::string outputFolder;
  /// Where the use of each tensor goes, if anywhere; also when the import is
  /// refused, unless that is before any tensor is looked for.
  std::vector<TensorUse> *tensors = nullptr;
};

struct Imported {
  mlir::OwningOpRef<mlir::ModuleOp> module;
  /// "gpt2", "llama".
  std::string architecture;
  int64_t layers = 0;
  /// Of the weights that the graph uses: logical elements and stored bytes.
  uint64_t parameters = 0, storedBytes = 0;
  /// Names of stored tensors that are unused, which ignored ones are not.
  std::vector<std::string> unused;
  /// Lower case remarks for the user, such as why there is no tokenizer.
  std::vector<std::string> notes;
};

/// The checkpoint need only live during the call. The gpt, func, arith and
/// ml_program dialects are loaded into `context`.
checkpoint::Expected<Imported>
importCheckpoint(mlir::MLIRContext &context,
                 const checkpoint::Checkpoint &checkpoint,
                 const ImportOptions &options);

/// "gpt2, llama; as GGUF: llama", for help texts and messages.
std::string supportedArchitectures();

/// Of a model: file names and C identifiers are made of it, which gptc bounds.
inline constexpr size_t mostNameBytes = 64;

/// Whether `name` can begin a C identifier and is one, of at most
/// mostNameBytes, other than "gptc", whose names the C interface has.
bool isModelName(llvm::StringRef name);

/// Writes the module with readable SSA names and with the locations that name
/// the tensors.
void printModel(mlir::ModuleOp module, llvm::raw_ostream &os);

} // namespace gptc

#endif // GPTC_IMPORT_IMPORT_H
