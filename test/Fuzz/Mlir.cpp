//===- Mlir.cpp - Fuzzes the compiler from model.mlir to kernels ----------===//
//
// Input: MLIR text. It goes through the guard, the parser and the verifier,
// then through the rooms as `gptc` runs them up to the kernels' schedule. A
// phase that fails must have said why. libMLIR itself has no sanitizers in it.
//
//===----------------------------------------------------------------------===//
#include "Fuzz.h"
#include "gptc/Dialect/Gpt/Gpt.h"
#include "gptc/Dialect/Gpt/ParseGuard.h"
#include "gptc/Fusion/Passes.h"
#include "gptc/Kernel/Passes.h"
#include "gptc/Schedule/Passes.h"
#include "gptc/Stepping/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace gptc;

namespace {
/// A context that is made anew now and then: it keeps every attribute that it
/// has seen.
struct Compiler {
  MLIRContext context{MLIRContext::Threading::DISABLED};
  unsigned errors = 0, runs = 0;

  Compiler() {
    DialectRegistry registry;
    registry
        .insert<gpt::GptDialect, func::FuncDialect, arith::ArithDialect,
                math::MathDialect, tensor::TensorDialect,
                ml_program::MLProgramDialect, vector::VectorDialect,
                scf::SCFDialect, cf::ControlFlowDialect, LLVM::LLVMDialect>();
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.printOpOnDiagnostic(false);
    context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
        ++errors;
      return success();
    });
  }

  bool phase(ModuleOp module, const char *silent,
             llvm::function_ref<void(OpPassManager &)> add) {
    PassManager manager(&context);
    add(manager);
    errors = 0;
    bool good = succeeded(manager.run(module));
    fuzz::require(good || errors, silent);
    return good;
  }

  /// The lexer looks at the byte after the last: a string has a zero there.
  void run(const std::string &text) {
    ++runs;
    std::string error;
    if (!bracketDepthOk(text, defaultBracketLimit, error))
      return fuzz::requireMessage(error);
    errors = 0;
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    fuzz::require(module || errors, "the parser says why it fails");
    if (!module)
      return;
    errors = 0;
    bool valid = succeeded(verify(*module));
    fuzz::require(valid || errors, "the verifier says why it fails");
    if (!valid)
      return;
    for (bool fused : {true, false}) {
      OwningOpRef<ModuleOp> copy = module->clone();
      compile(*copy, fused);
    }
  }

  void compile(ModuleOp module, bool fused) {
    bool good =
        phase(module, "stepping says why it fails", [](OpPassManager &manager) {
          manager.addNestedPass<func::FuncOp>(createRemoveDropout());
          manager.addPass(createDeriveStep());
        });
    good = good && phase(module, "fusion says why it fails",
                         [&](OpPassManager &manager) {
                           if (fused)
                             buildFusionPipeline(manager);
                           else
                             buildUnfusedPipeline(manager);
                         });
    good = good && phase(module, "outlining says why it fails",
                         [](OpPassManager &manager) {
                           manager.addPass(createOutlineKernels());
                           manager.addPass(createVerifyOutlined());
                         });
    if (good)
      phase(module, "scheduling says why it fails", [](OpPassManager &manager) {
        manager.addPass(createSelectSchedule({"x86-64-v3"}));
      });
  }
};
} // namespace

/// LLVM's arenas poison what they have not handed out, but only in code that is
/// built with ASan: libMLIR hands out memory and leaves it poisoned.
extern "C" const char *__asan_default_options() {
  return "allow_user_poisoning=0";
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static std::unique_ptr<Compiler> compiler;
  if (!compiler || compiler->runs == 200)
    compiler = std::make_unique<Compiler>();
  compiler->run(std::string(fuzz::text(data, size)));
  return 0;
}
