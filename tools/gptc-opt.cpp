//===- gptc-opt.cpp - run single passes on MLIR text ----------------------===//
//
// mlir-opt with the gpt dialect and gptc's passes: what the lit tests and a
// person looking at one pass use. Refuses input whose brackets are nested
// deeper than MLIR's recursive parser can bear.
//
//===----------------------------------------------------------------------===//
#include "LlvmStreams.h"
#include "StandardStreams.h"
#include "gptc/Dialect/Gpt/Gpt.h"
#include "gptc/Dialect/Gpt/ParseGuard.h"
#include "gptc/Dialect/Gpt/Registry.h"
#include "gptc/Fusion/Passes.h"
#include "gptc/Kernel/Passes.h"
#include "gptc/Schedule/Passes.h"
#include "gptc/Stepping/Passes.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

static void registerPasses() {
  registerCanonicalizerPass();
  registerCSEPass();
  gptc::registerSteppingPasses();
  gptc::registerFusionPasses();
  gptc::registerFusionPipelines();
  gptc::registerKernelPasses();
  gptc::registerSchedulePasses();
}

static int optMain(int argc, char **argv) {
  DialectRegistry registry;
  gptc::registerDialects(registry);
  registerPasses();

  auto [inputName, outputName] = registerAndParseCLIOptions(
      argc, argv, "gptc optimizer driver\n", registry);
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects())
    return asMainReturnCode(
        MlirOptMain(llvm::outs(), nullptr, registry, config));
  std::string error;
  auto input = openInputFile(inputName, &error);
  if (!input) {
    llvm::errs() << "error: " << error << "\n";
    return 1;
  }
  if (!gptc::bracketDepthOk(input->getBuffer(), gptc::defaultBracketLimit,
                            error)) {
    llvm::errs() << inputName << ":" << error << "\n";
    return 1;
  }
  auto output = openOutputFile(outputName, &error);
  if (!output) {
    llvm::errs() << "error: " << error << "\n";
    return 1;
  }
  if (failed(MlirOptMain(output->os(), std::move(input), registry, config)))
    return 1;
  if (outputName == "-")
    return 0;
  output->os().flush();
  if (std::error_code code = output->os().error()) {
    llvm::errs() << outputName << ": cannot write: " << code.message() << '\n';
    output->os().clear_error();
    return 1;
  }
  output->keep();
  return 0;
}

int main(int argc, char **argv) {
  gptc::holdStandardStreams();
  llvm::InitLLVM init(argc, argv);
  return gptc::finishStreams("gptc-opt", optMain(argc, argv));
}
