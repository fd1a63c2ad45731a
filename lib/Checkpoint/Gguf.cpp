//===- Gguf.cpp - GGUF's header and table of tensors ----------------------===//

#include "GgufMetadata.h"
#include <algorithm>
#include <bit>
#include <fmt/format.h>
#include <unordered_set>

using namespace gptc::checkpoint;
using namespace gptc::checkpoint::gguf;

static constexpr uint64_t maxDims = 4; // ggml's own bound
static constexpr size_t maxNameBytes = 65535;
/// Of tensors, and of metadata pairs: far above any model, and small enough
/// that their tables stay below 20 MB.
static constexpr uint64_t maxEntries = 65536;
/// Length, one byte of text, type and value of the smallest pair; length, text,
/// number of dimensions, type and offset of the smallest tensor entry.
static constexpr uint64_t leastPairBytes = 8 + 1 + 4 + 1;
static constexpr uint64_t leastTensorBytes = 8 + 1 + 4 + 4 + 8;

/// By ggml's type number. Empty: a number that was withdrawn or never given.
static constexpr std::string_view ggmlTypeNames[] = {
    "F32",   "F16",   "Q4_0",    "Q4_1",   "Q4_2",    "Q4_3",  "Q5_0",
    "Q5_1",  "Q8_0",  "Q8_1",    "Q2_K",   "Q3_K",    "Q4_K",  "Q5_K",
    "Q6_K",  "Q8_K",  "IQ2_XXS", "IQ2_XS", "IQ3_XXS", "IQ1_S", "IQ4_NL",
    "IQ3_S", "IQ2_S", "IQ4_XS",  "I8",     "I16",     "I32",   "I64",
    "F64",   "IQ1_M", "BF16",    "",       "",        "",      "TQ1_0",
    "TQ2_0", "",      "",        "",       "MXFP4"};

static std::optional<Storage> storageOf(uint64_t ggmlType) {
  switch (ggmlType) {
  case 0:
    return Storage::F32;
  case 1:
    return Storage::F16;
  case 2:
    return Storage::Q4_0;
  case 3:
    return Storage::Q4_1;
  case 6:
    return Storage::Q5_0;
  case 7:
    return Storage::Q5_1;
  case 8:
    return Storage::Q8_0;
  case 10:
    return Storage::Q2_K;
  case 11:
    return Storage::Q3_K;
  case 12:
    return Storage::Q4_K;
  case 13:
    return Storage::Q5_K;
  case 14:
    return Storage::Q6_K;
  case 24:
    return Storage::I8;
  case 25:
    return Storage::I16;
  case 26:
    return Storage::I32;
  case 27:
    return Storage::I64;
  case 28:
    return Storage::F64;
  case 30:
    return Storage::BF16;
  }
  return std::nullopt;
}

namespace {

class FileReader {
public:
  explicit FileReader(const MappedFile &file) : file(file), cursor(file) {}

  Expected<Contents> read();

private:
  Expected<void> readVersion();
  Expected<void> checkCount(std::string_view what, uint64_t count,
                            uint64_t leastBytes) const;
  Expected<void> checkMetadata();
  Expected<TensorInfo> readTensor(uint64_t number, uint64_t count);
  Expected<void> readShape(TensorInfo &tensor);
  Expected<void> placeTensors();

  Error error(std::string_view rule) const {
    return Error{fmt::format("{}: {}", file.path(), rule)};
  }
  Error tensorError(std::string_view tensor, std::string_view rule) const {
    return Error{
        fmt::format("{}: tensor {}: {}", file.path(), quote(tensor), rule)};
  }

  const MappedFile &file;
  Cursor cursor;
  Contents contents;
};

} // namespace

Expected<void> FileReader::readVersion() {
  if (!file.text().starts_with("GGUF"))
    return error(fmt::format("magic: expected 'GGUF', got {}",
                             quote(file.text().substr(0, 4))));
  cursor.skip(4);
  std::optional<uint64_t> version = cursor.number(4);
  if (!version)
    return error(fmt::format("version: expected a header of 24 bytes, got a "
                             "file of {} bytes",
                             file.size()));
  if (*version == 3)
    return {};
  // A version is a small number: with its low half empty it was written by a
  // machine of the other byte order.
  if ((*version & 0xffff) == 0 && *version != 0)
    return error("version: expected little-endian, got a big-endian file "
                 "(bytes 00 00 00 03 or alike); convert it to little-endian");
  return error(fmt::format("version: expected GGUF version 3, got {}; convert "
                           "the model again with a current converter",
                           *version));
}

/// A count is compared with what the rest of the file can hold before it is
/// believed.
Expected<void> FileReader::checkCount(std::string_view what, uint64_t count,
                                      uint64_t leastBytes) const {
  uint64_t most = std::min(cursor.left() / leastBytes, maxEntries);
  if (count <= most)
    return {};
  return error(fmt::format("{}: expected at most {} in a file of {} bytes, got "
                           "{}",
                           what, most, file.size(), count));
}

/// The keys that say how to read the rest of the file.
Expected<void> FileReader::checkMetadata() {
  const Metadata &metadata = contents.metadata;
  if (const Value *value = metadata.find("general.alignment")) {
    const uint64_t *alignment = std::get_if<uint64_t>(&value->data);
    if (value->type != ValueType::Uint32 || !std::has_single_bit(*alignment))
      return metadata.error("general.alignment",
                            "expected a uint32 that is a power of two, got " +
                                value->describe());
    contents.alignment = static_cast<uint32_t>(*alignment);
  }
  if (metadata.has("split.count")) {
    Expected<int64_t> parts = metadata.integer("split.count");
    if (!parts)
      return parts.error();
    if (*parts > 1)
      return metadata.error("split.count",
                            fmt::format("expected a whole model, got one of {} "
                                        "parts; merge them first with "
                                        "llama-gguf-split --merge",
                                        *parts));
  }
  return {};
}

Expected<void> FileReader::readShape(TensorInfo &tensor) {
  std::optional<uint64_t> dims = cursor.number(4);
  if (!dims)
    return tensorError(tensor.name,
                       "its entry goes beyond the end of the file");
  if (*dims > maxDims)
    return tensorError(
        tensor.name,
        fmt::format("expected at most {} dimensions, got {}", maxDims, *dims));
  for (uint64_t i = 0; i < *dims; ++i) {
    std::optional<uint64_t> size = cursor.number(8);
    if (!size)
      return tensorError(tensor.name,
                         "its entry goes beyond the end of the file");
    if (*size == 0 || *size > static_cast<uint64_t>(INT64_MAX))
      return tensorError(tensor.name,
                         fmt::format("dimension {}: expected 1 to 2^63 - 1, "
                                     "got {}",
                                     i, *size));
    tensor.shape.push_back(static_cast<int64_t>(*size));
  }
  // GGUF lists the innermost dimension first.
  std::reverse(tensor.shape.begin(), tensor.shape.end());
  return {};
}

/// Reads one entry; `offset` stays relative to the data, which begins after the
/// table.
Expected<TensorInfo> FileReader::readTensor(uint64_t number, uint64_t count) {
  std::optional<std::string_view> name = cursor.string();
  if (!name)
    return error(fmt::format("tensor {} of {}: its name, at byte {}, goes "
                             "beyond the end of the file ({} bytes)",
                             number + 1, count, cursor.position(),
                             file.size()));
  if (name->empty() || name->size() > maxNameBytes)
    return error(fmt::format("tensor {} of {}: expected a name of 1 to {} "
                             "bytes, got {}",
                             number + 1, count, maxNameBytes, name->size()));
  TensorInfo tensor;
  tensor.name = *name;
  tensor.file = file.path();
  Expected<void> shape = readShape(tensor);
  if (!shape)
    return shape.error();

  std::optional<uint64_t> type = cursor.number(4);
  std::optional<uint64_t> offset = type ? cursor.number(8) : std::nullopt;
  if (!offset)
    return tensorError(*name, "its entry goes beyond the end of the file");
  std::optional<Storage> storage = storageOf(*type);
  if (!storage) {
    std::string_view known = *type < std::size(ggmlTypeNames)
                                 ? ggmlTypeNames[*type]
                                 : std::string_view();
    return tensorError(
        *name, fmt::format("expected F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, "
                           "Q5_1 or Q2_K to Q6_K, got ggml type {} ({}), not "
                           "read by this version",
                           *type, known.empty() ? "unknown" : known));
  }
  tensor.storage = *storage;
  Expected<uint64_t> bytes = tensorBytes(tensor.storage, tensor.shape);
  if (!bytes)
    return tensorError(*name, bytes.error().message);
  tensor.bytes = *bytes;
  if (*offset % contents.alignment != 0)
    return tensorError(*name, fmt::format("offset: expected a multiple of the "
                                          "alignment, {}, got {}",
                                          contents.alignment, *offset));
  tensor.offset = *offset;
  return tensor;
}

/// Turns offsets into places in the file, and checks that the tensors lie in it
/// side by side.
Expected<void> FileReader::placeTensors() {
  std::vector<TensorInfo> &tensors = contents.tensors;
  if (tensors.empty())
    return {};
  // No sum here wraps: a file is shorter than 2^63 bytes, an alignment is at
  // most 2^31.
  uint64_t alignment = contents.alignment;
  uint64_t dataBegin =
      (cursor.position() + alignment - 1) / alignment * alignment;
  uint64_t dataBytes = dataBegin < file.size() ? file.size() - dataBegin : 0;

  std::vector<const TensorInfo *> order;
  order.reserve(tensors.size());
  for (TensorInfo &tensor : tensors) {
    if (tensor.bytes > dataBytes || tensor.offset > dataBytes - tensor.bytes)
      return tensorError(tensor.name,
                         fmt::format("shape {} of {} takes {} bytes at offset "
                                     "{}, but the file has {} bytes of data; "
                                     "it is truncated or damaged",
                                     shapeText(tensor.shape),
                                     storageName(tensor.storage), tensor.bytes,
                                     tensor.offset, dataBytes));
    tensor.offset += dataBegin;
    tensor.data = file.data() + tensor.offset;
    order.push_back(&tensor);
  }
  std::sort(order.begin(), order.end(),
            [](const TensorInfo *a, const TensorInfo *b) {
              return a->offset < b->offset;
            });
  for (size_t i = 1; i < order.size(); ++i) {
    const TensorInfo &before = *order[i - 1], &tensor = *order[i];
    if (tensor.offset < before.offset + before.bytes)
      return tensorError(tensor.name,
                         fmt::format("its bytes, from offset {}, overlap those "
                                     "of tensor {}, [{}, {}]",
                                     tensor.offset - dataBegin,
                                     quote(before.name),
                                     before.offset - dataBegin,
                                     before.offset - dataBegin + before.bytes));
  }
  return {};
}

Expected<Contents> FileReader::read() {
  Expected<void> version = readVersion();
  if (!version)
    return version.error();
  std::optional<uint64_t> tensorCount = cursor.number(8);
  std::optional<uint64_t> pairCount = cursor.number(8);
  if (!pairCount)
    return error(fmt::format("expected a header of 24 bytes, got a file of {} "
                             "bytes",
                             file.size()));
  Expected<void> counted =
      checkCount("metadata count", *pairCount, leastPairBytes);
  if (counted)
    counted = checkCount("tensor count", *tensorCount, leastTensorBytes);
  if (!counted)
    return counted.error();

  Expected<Metadata> metadata = MetadataBuilder(file, cursor).read(*pairCount);
  if (!metadata)
    return metadata.error();
  contents.metadata = std::move(*metadata);
  Expected<void> checked = checkMetadata();
  if (!checked)
    return checked.error();

  std::unordered_set<std::string_view> names;
  for (uint64_t i = 0; i < *tensorCount; ++i) {
    const char *entry = reinterpret_cast<const char *>(cursor.here());
    Expected<TensorInfo> tensor = readTensor(i, *tensorCount);
    if (!tensor)
      return tensor.error();
    // The name in the mapping: an entry begins with its length.
    if (!names.emplace(entry + 8, tensor->name.size()).second)
      return tensorError(tensor->name, "duplicate name");
    contents.tensors.push_back(std::move(*tensor));
  }
  Expected<void> placed = placeTensors();
  if (!placed)
    return placed.error();
  return std::move(contents);
}

Expected<Contents> gguf::read(const MappedFile &file) {
  return FileReader(file).read();
}
