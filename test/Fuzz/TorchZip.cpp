//===- TorchZip.cpp - Fuzzes the zip reader and the pickle machine --------===//
//
// Input: z and a whole archive, or any other letter and a pickle, which is put
// into an archive with one storage, '0', of 24 bytes: few mutations of a whole
// archive keep its offsets right.
//
//===----------------------------------------------------------------------===//
#include "gptc/Checkpoint/TorchZip.h"
#include "Fuzz.h"

using namespace gptc::checkpoint;

static std::string number(uint64_t value, unsigned bytes) {
  std::string text;
  for (unsigned i = 0; i < bytes; ++i)
    text += static_cast<char>(value >> (8 * i));
  return text;
}

static std::string archiveOf(std::string_view pickle) {
  const std::pair<std::string, std::string> entries[] = {
      {"m/data.pkl", std::string(pickle)}, {"m/data/0", std::string(24, '\1')}};
  std::string file, directory;
  for (const auto &[name, data] : entries) {
    std::string sizes = number(0, 4) + number(data.size(), 4) +
                        number(data.size(), 4) + number(name.size(), 2) +
                        number(0, 2);
    std::string header = std::string(10, '\0');
    directory += "PK\1\2" + number(0, 2) + header + sizes +
                 std::string(10, '\0') + number(file.size(), 4) + name;
    file += "PK\3\4" + header + sizes + name + data;
  }
  return file + directory + "PK\5\6" + number(0, 4) + number(2, 2) +
         number(2, 2) + number(directory.size(), 4) + number(file.size(), 4) +
         number(0, 2);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static fuzz::MemoryFile memory;
  if (size == 0)
    return 0;
  std::string whole(fuzz::text(data + 1, size - 1));
  if (data[0] != 'z')
    whole = archiveOf(whole);
  auto file = MappedFile::open(memory.with(whole.data(), whole.size()));
  fuzz::require(bool(file), "the file in memory can be mapped");
  auto contents = readTorchZip(*file);
  if (!contents) {
    fuzz::requireMessage(contents.error().message);
    fuzz::require(data[0] == 'z' || !contents.error().message.starts_with(
                                        file->path() + ": zip archive"),
                  "the archive made here is whole");
    return 0;
  }
  for (const TensorInfo &tensor : contents->tensors) {
    fuzz::require(tensor.bytes <= whole.size() &&
                      tensor.offset <= whole.size() - tensor.bytes,
                  "a tensor lies in its file");
    auto bytes = tensorBytes(tensor.storage, tensor.shape);
    fuzz::require(bytes && *bytes == tensor.bytes,
                  "a tensor takes what its shape says");
    fuzz::touch(tensor.data, tensor.bytes);
  }
  contents->config.describe();
  return 0;
}
