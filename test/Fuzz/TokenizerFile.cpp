//===- TokenizerFile.cpp - Fuzzes a package's tokenizer.bin ---------------===//
//
// The input is a whole file. Its payload length and checksum are put right, or
// no mutation would come past them, unless its first byte says otherwise.
//
//===----------------------------------------------------------------------===//
#include "Tokenizers.h"
#include <cstring>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::vector<uint8_t> file(data, data + size);
  if (size >= 24 && data[0] % 16) {
    uint64_t payload = size - 24, hash = 0xcbf29ce484222325;
    for (size_t i = 24; i < size; ++i)
      hash = (hash ^ file[i]) * 0x100000001b3;
    std::memcpy(file.data(), "GPTCTOK2", 8);
    std::memcpy(file.data() + 8, &payload, 8);
    std::memcpy(file.data() + 16, &hash, 8);
  }
  std::string error;
  if (auto parsed = gptc::text::parse(file, error))
    fuzz::requireUsable(*parsed);
  else
    fuzz::requireMessage(error);
  return 0;
}
