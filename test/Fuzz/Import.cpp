//===- Import.cpp - Fuzzes what the importer makes of a config.json -------===//
//
// Input: a letter, which chooses the tensors of a small model (a: The Annotated
// Transformer, e: Gemma 2, g: GPT-2, m: Mistral, p: Phi-3, q: Qwen2, x:
// GPT-NeoX, else Llama), then config.json. What imports must verify.
//
//===----------------------------------------------------------------------===//
#include "gptc/Import/Import.h"
#include "Fuzz.h"
#include "gptc/Dialect/Gpt/Gpt.h"
#include "mlir/IR/Verifier.h"
#include <filesystem>
#include <memory>

namespace fs = std::filesystem;

namespace {
/// A checkpoint's folder; gone with the process. Its config lies in memory.
struct Folder {
  fs::path path;
  fuzz::MemoryFile config;
  /// `tensors`: a folder of test/.
  explicit Folder(const char *tensors) {
    std::string name =
        (fs::temp_directory_path() / "gptc-fuzz-XXXXXX").string();
    path = mkdtemp(name.data());
    fs::create_symlink(fs::path(GPTC_TEST) / tensors / "model.safetensors",
                       path / "model.safetensors");
    fs::create_symlink(config.with("", 0), path / "config.json");
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

struct Context {
  mlir::MLIRContext context{mlir::MLIRContext::Threading::DISABLED};
  unsigned runs = 0;
};
} // namespace

/// LLVM's arenas poison what they have not handed out, but only in code that is
/// built with ASan: libMLIR hands out memory and leaves it poisoned.
extern "C" const char *__asan_default_options() {
  return "allow_user_poisoning=0";
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static Folder gpt2("Golden/gpt2-hf"), llama("Golden/llama-hf"),
      annotated("Families/annotated-transformer"), gemma2("Families/gemma2"),
      mistral("Families/mistral"), neox("Families/gpt-neox"),
      phi3("Families/phi3"), qwen2("Families/qwen2");
  static std::unique_ptr<Context> state;
  if (size == 0)
    return 0;
  // It keeps every attribute that it has seen: a new one now and then.
  if (!state || ++state->runs == 200)
    state = std::make_unique<Context>();
  Folder &folder = data[0] == 'g'   ? gpt2
                   : data[0] == 'a' ? annotated
                   : data[0] == 'e' ? gemma2
                   : data[0] == 'm' ? mistral
                   : data[0] == 'p' ? phi3
                   : data[0] == 'q' ? qwen2
                   : data[0] == 'x' ? neox
                                    : llama;
  folder.config.with(data + 1, size - 1);
  auto checkpoint = gptc::checkpoint::Checkpoint::open(folder.path.string());
  if (!checkpoint) {
    fuzz::requireMessage(checkpoint.error().message);
    return 0;
  }
  auto imported =
      gptc::importCheckpoint(state->context, *checkpoint, {"model", ""});
  if (imported)
    fuzz::require(succeeded(mlir::verify(*imported->module)),
                  "what imports verifies");
  else
    fuzz::requireMessage(imported.error().message);
  return 0;
}
