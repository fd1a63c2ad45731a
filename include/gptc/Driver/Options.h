//===- Options.h - the command line of gptc ---------------------*- C++ -*-===//
//
// Every option stands once, in the table of Options.cpp, which parsing, --help
// and suggestions share.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "gptc/Schedule/CudaTarget.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace gptc {

/// What --emit can name, in the order of the data flow.
enum class Emit {
  Gpt,
  Step,
  Fused,
  Dot,
  Kernels,
  Cu,
  Ptx,
  Fatbin,
  Mlir,
  Llvm,
  Asm,
  Obj,
  Lib,
  Header,
  Manifest
};

struct Options {
  enum class Action { Compile, Help, Version, ListTargets, ListFusions };
  Action action = Action::Compile;
  std::string input;  ///< "-": stdin
  std::string output; ///< folder; empty only for a single --emit
  int optimization = 2;
  bool cuda = false; ///< --target
  std::string march; ///< empty: native, or sm_80
  /// Arithmetic of GEMM and attention; none: f32, or bf16 for CUDA.
  std::optional<InputPrecision> precision;
  /// Element of the KV cache: f32, bf16 or f16. Not given: the precision's, f32
  /// for tf32; a model with a step entry of its own then says it in its types.
  std::string kv = "f32";
  bool kvGiven = false;
  bool onlyCommands = false; ///< -###
  bool dequantize = false;   ///< --weights=f32
  bool noWeights = false;
  std::string checkpoint;
  std::vector<std::string> disabledFusions;
  std::vector<Emit> emit; ///< empty: the package
  std::string dumpFolder;
  std::string tempsFolder; ///< --save-temps; empty: none
  bool timing = false;
  std::string timingFile;
  bool verifyFusions = false;
  bool verbose = false;
  std::vector<std::string> remarks; ///< categories to print
  std::string remarksOutput;        ///< file for all as YAML; empty: none
  bool explainFusion = false;
  std::string reproducer; ///< file
  /// For tests, not in --help: the phase that crashes when it begins.
  std::string testCrash;
  /// Nothing is to be written.
  bool onlyReports() const {
    return (verifyFusions || explainFusion) && output.empty() && emit.empty();
  }
  /// The arguments that a reproducer repeats: all but the input and its own.
  std::vector<std::string> others;
};

/// Parses the arguments after the program's name. False with a lower case
/// message that says what was expected, with the nearest spelling.
bool parseOptions(llvm::ArrayRef<const char *> args, Options &options,
                  std::string &error);

/// The text of --help.
std::string helpText();

} // namespace gptc
