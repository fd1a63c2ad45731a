//===- Safetensors.cpp - Fuzzes the safetensors reader --------------------===//
#include "gptc/Checkpoint/Safetensors.h"
#include "Fuzz.h"

using namespace gptc::checkpoint;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static fuzz::MemoryFile memory;
  auto file = MappedFile::open(memory.with(data, size));
  fuzz::require(bool(file), "the file in memory can be mapped");
  auto tensors = readSafetensors(*file);
  if (!tensors) {
    fuzz::requireMessage(tensors.error().message);
    return 0;
  }
  for (const TensorInfo &tensor : *tensors) {
    fuzz::require(tensor.bytes <= size && tensor.offset <= size - tensor.bytes,
                  "a tensor lies in its file");
    auto bytes = tensorBytes(tensor.storage, tensor.shape);
    fuzz::require(bytes && *bytes == tensor.bytes,
                  "a tensor takes what its shape says");
    fuzz::touch(tensor.data, tensor.bytes);
  }
  return 0;
}
