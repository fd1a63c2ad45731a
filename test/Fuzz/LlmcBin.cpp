//===- LlmcBin.cpp - Fuzzes the reader of llm.c's model files -------------===//
//
// Input: what the file holds without the zeros that fill its header to 1024
// bytes: 8 numbers, then the parameters.
//
//===----------------------------------------------------------------------===//
#include "gptc/Checkpoint/LlmcBin.h"
#include "Fuzz.h"

using namespace gptc::checkpoint;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static fuzz::MemoryFile memory;
  std::string whole(fuzz::text(data, size));
  if (size >= 32)
    whole.insert(32, 1024 - 32, '\0');
  auto file = MappedFile::open(memory.with(whole.data(), whole.size()));
  fuzz::require(bool(file), "the file in memory can be mapped");
  auto contents = readLlmcBin(*file);
  if (!contents) {
    fuzz::requireMessage(contents.error().message);
    return 0;
  }
  uint64_t sum = 0;
  for (const TensorInfo &tensor : contents->tensors) {
    fuzz::require(tensor.bytes <= whole.size() &&
                      tensor.offset <= whole.size() - tensor.bytes,
                  "a tensor lies in its file");
    auto bytes = tensorBytes(tensor.storage, tensor.shape);
    fuzz::require(bytes && *bytes == tensor.bytes,
                  "a tensor takes what its shape says");
    fuzz::touch(tensor.data, tensor.bytes);
    sum += tensor.bytes;
  }
  fuzz::require(sum <= whole.size(), "no two tensors share bytes");
  return 0;
}
