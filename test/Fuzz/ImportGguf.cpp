//===- ImportGguf.cpp - Fuzzes what the importer makes of a GGUF file -----===//
//
// Input: the whole file. What imports must verify.
//
//===----------------------------------------------------------------------===//
#include "Fuzz.h"
#include "gptc/Dialect/Gpt/Gpt.h"
#include "gptc/Import/Import.h"
#include "mlir/IR/Verifier.h"
#include <memory>

namespace {
struct Context {
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  unsigned runs = 0;
};
} // namespace

/// See Import.cpp.
extern "C" const char *__asan_default_options() {
  return "allow_user_poisoning=0";
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static fuzz::MemoryFile memory;
  static std::unique_ptr<Context> state;
  auto checkpoint = gptc::checkpoint::Checkpoint::open(memory.with(data, size));
  if (!checkpoint) {
    fuzz::requireMessage(checkpoint.error().message);
    return 0;
  }
  // It keeps every attribute that it has seen: a new one now and then.
  if (!state || ++state->runs == 200)
    state = std::make_unique<Context>();
  auto imported =
      gptc::importCheckpoint(state->context, *checkpoint, {"model", ""});
  if (imported)
    fuzz::require(succeeded(mlir::verify(*imported->module)),
                  "what imports verifies");
  else
    fuzz::requireMessage(imported.error().message);
  return 0;
}
