//===- ImportGguf.cpp - Fuzzes what the importer makes of a GGUF file -----===//
//
// Input: the whole file. What imports must verify.
//
//===----------------------------------------------------------------------===//
#include "ImportAndVerify.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static fuzz::MemoryFile memory;
  fuzz::importAndVerify(memory.with(data, size));
  return 0;
}
