//===- ImportAndVerify.h - What import fuzzers share ------------*- C++ -*-===//
#ifndef GPTC_TEST_FUZZ_IMPORTANDVERIFY_H
#define GPTC_TEST_FUZZ_IMPORTANDVERIFY_H

#include "Fuzz.h"
#include "gptc/Import/Import.h"
#include "mlir/IR/Verifier.h"
#include <memory>

/// LLVM's arenas poison what they have not handed out, but only in code that is
/// built with ASan: libMLIR hands out memory and leaves it poisoned.
extern "C" const char *__asan_default_options() {
  return "allow_user_poisoning=0";
}

namespace fuzz {

/// What cannot be opened or imported is refused with a message; what imports
/// must verify.
inline void importAndVerify(const std::string &path) {
  auto checkpoint = gptc::checkpoint::Checkpoint::open(path);
  if (!checkpoint)
    return requireMessage(checkpoint.error().message);
  // It keeps every attribute that it has seen: a new one now and then.
  static std::unique_ptr<mlir::MLIRContext> context;
  static unsigned runs = 0;
  if (runs++ % 200 == 0)
    context = std::make_unique<mlir::MLIRContext>(
        mlir::MLIRContext::Threading::DISABLED);
  auto imported = gptc::importCheckpoint(*context, *checkpoint, {"model", ""});
  if (!imported)
    return requireMessage(imported.error().message);
  require(succeeded(mlir::verify(*imported->module)), "what imports verifies");
}

} // namespace fuzz

#endif // GPTC_TEST_FUZZ_IMPORTANDVERIFY_H
