//===- Import.cpp - Fuzzes what the importer makes of a config.json -------===//
//
// Input: a letter, which chooses the tensors of a small model (a: The Annotated
// Transformer, e: Gemma 2, g: GPT-2, m: Mistral, p: Phi-3, q: Qwen2, x:
// GPT-NeoX, else Llama), then config.json. What imports must verify.
//
//===----------------------------------------------------------------------===//
#include "ImportAndVerify.h"
#include <filesystem>

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
} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static Folder gpt2("Golden/gpt2-hf"), llama("Golden/llama-hf"),
      annotated("Families/annotated-transformer"), gemma2("Families/gemma2"),
      mistral("Families/mistral"), neox("Families/gpt-neox"),
      phi3("Families/phi3"), qwen2("Families/qwen2");
  if (size == 0)
    return 0;
  Folder &folder = data[0] == 'g'   ? gpt2
                   : data[0] == 'a' ? annotated
                   : data[0] == 'e' ? gemma2
                   : data[0] == 'm' ? mistral
                   : data[0] == 'p' ? phi3
                   : data[0] == 'q' ? qwen2
                   : data[0] == 'x' ? neox
                                    : llama;
  folder.config.with(data + 1, size - 1);
  fuzz::importAndVerify(folder.path.string());
  return 0;
}
