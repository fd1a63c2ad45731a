//===- ShardIndex.cpp - Fuzzes model.safetensors.index.json ---------------===//
#include "Fuzz.h"
#include "gptc/Checkpoint/Safetensors.h"

using namespace gptc::checkpoint;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static fuzz::MemoryFile memory;
  auto index = readShardIndex(memory.with(data, size));
  if (!index)
    fuzz::requireMessage(index.error().message);
  else
    for (const auto &[tensor, file] : *index)
      fuzz::require(!file.empty() && file != ".." &&
                        file.find('/') == std::string::npos,
                    "a shard lies in the folder of its index");
  return 0;
}
