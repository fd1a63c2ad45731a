//===- Gguf.cpp - Fuzzes the GGUF reader and its typed reads --------------===//
//
// And the numbers of the first row of each tensor of weights, as they are and
// converted to a format of packages: they are the same.
//
//===----------------------------------------------------------------------===//
#include "gptc/Checkpoint/Gguf.h"
#include "Fuzz.h"

using namespace gptc::checkpoint;

static void readAll(const gguf::Metadata &metadata) {
  for (const gguf::Entry &entry : metadata.entries()) {
    entry.value.describe();
    // Each read either fits the value's type or names both.
    auto check = [](const auto &read) {
      if (!read)
        fuzz::requireMessage(read.error().message);
      return bool(read);
    };
    check(metadata.integer(entry.key));
    check(metadata.real(entry.key));
    check(metadata.string(entry.key));
    check(metadata.boolean(entry.key));
    check(metadata.strings(entry.key));
    auto array = metadata.array(entry.key);
    if (!check(array))
      continue;
    const gguf::Array &elements = **array;
    for (uint64_t i = 0; i < elements.count; ++i) {
      if (elements.isInteger())
        elements.integerAt(i);
      if (elements.isReal())
        elements.realAt(i);
    }
    for (std::string_view string : elements.strings)
      fuzz::touch(reinterpret_cast<const uint8_t *>(string.data()),
                  string.size());
  }
}

static void readRow(const TensorInfo &tensor) {
  size_t count = tensor.shape.empty() ? 1 : tensor.shape.back();
  // A block of 256 elements takes 84 bytes or more.
  fuzz::require(count <= tensor.bytes * 4, "a row lies in its tensor");
  std::vector<float> values(count), same(count);
  Storage packed = packedFrom(tensor.storage);
  std::vector<uint8_t> row(*rowBytes(packed, count));
  fuzz::require(
      dequantizeRow(tensor.storage, tensor.data, count, values.data()) &&
          convertRow(tensor.storage, tensor.data, count, row.data()) &&
          dequantizeRow(packed, row.data(), count, same.data()),
      "weights can be read");
  for (size_t i = 0; i < count; ++i)
    fuzz::require(values[i] == same[i] || values[i] != values[i],
                  "a converted row holds the same numbers");
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static fuzz::MemoryFile memory;
  auto file = MappedFile::open(memory.with(data, size));
  fuzz::require(bool(file), "the file in memory can be mapped");
  auto contents = gguf::read(*file);
  if (!contents) {
    fuzz::requireMessage(contents.error().message);
    return 0;
  }
  readAll(contents->metadata);
  for (const TensorInfo &tensor : contents->tensors) {
    fuzz::require(tensor.bytes <= size && tensor.offset <= size - tensor.bytes,
                  "a tensor lies in its file");
    fuzz::touch(tensor.data, tensor.bytes);
    if (isWeightStorage(tensor.storage))
      readRow(tensor);
  }
  return 0;
}
