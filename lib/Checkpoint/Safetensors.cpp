//===- Safetensors.cpp - The safetensors format ---------------------------===//

#include "gptc/Checkpoint/Safetensors.h"
#include "gptc/Checkpoint/Json.h"
#include <algorithm>
#include <fmt/format.h>

using namespace gptc::checkpoint;

/// The limit of the format's own library.
static constexpr uint64_t maxHeaderBytes = 100'000'000;
/// No model has tensors of a higher rank; a bound keeps messages readable.
static constexpr size_t maxRank = 8;

static std::optional<Storage> parseDtype(std::string_view name) {
  static constexpr std::pair<std::string_view, Storage> dtypes[] = {
      {"F32", Storage::F32},        {"F16", Storage::F16},
      {"BF16", Storage::BF16},      {"F64", Storage::F64},
      {"F8_E4M3", Storage::F8E4M3}, {"F8_E5M2", Storage::F8E5M2},
      {"I8", Storage::I8},          {"I16", Storage::I16},
      {"I32", Storage::I32},        {"I64", Storage::I64},
      {"U8", Storage::U8},          {"U16", Storage::U16},
      {"U32", Storage::U32},        {"U64", Storage::U64},
      {"BOOL", Storage::Bool},
  };
  for (auto [known, storage] : dtypes)
    if (known == name)
      return storage;
  return std::nullopt;
}

namespace {

/// Reads one file; knows where its data begins and how long it is.
class HeaderReader {
public:
  explicit HeaderReader(const MappedFile &file) : file(file) {}

  Expected<std::vector<TensorInfo>> read();

private:
  Expected<json::Value> readHeader();
  Expected<TensorInfo> readTensor(const json::Member &member) const;
  Expected<std::vector<int64_t>> readShape(const json::Member &member) const;
  Expected<void> checkSpans(const std::vector<TensorInfo> &tensors) const;

  Error error(std::string_view tensor, std::string_view rule) const {
    return Error{
        fmt::format("{}: tensor {}: {}", file.path(), quote(tensor), rule)};
  }

  const MappedFile &file;
  uint64_t dataBegin = 0;
  uint64_t dataBytes = 0;
};

} // namespace

Expected<json::Value> HeaderReader::readHeader() {
  if (file.size() < 8)
    return Error{fmt::format("{}: header length: expected at least 8 bytes, "
                             "got a file of {} bytes",
                             file.path(), file.size())};
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i)
    length = length << 8 | file.data()[i];
  if (length > file.size() - 8)
    return Error{fmt::format("{}: header length: expected at most {} (the file "
                             "has {} bytes), got {}; the file is truncated or "
                             "not safetensors",
                             file.path(), file.size() - 8, file.size(),
                             length)};
  if (length > maxHeaderBytes)
    return Error{fmt::format("{}: header length: expected at most {}, got {}",
                             file.path(), maxHeaderBytes, length)};
  std::string_view text = file.text().substr(8, length);
  if (text.empty() || text.front() != '{')
    return Error{fmt::format(
        "{}: header: expected '{{' at byte 8, got {}", file.path(),
        text.empty() ? "an empty header" : quote(text.substr(0, 1)))};
  dataBegin = 8 + length;
  dataBytes = file.size() - dataBegin;
  return json::parse(text, file.path() + ": header");
}

Expected<std::vector<int64_t>>
HeaderReader::readShape(const json::Member &member) const {
  const json::Value *value = member.value.find("shape");
  const json::Array *dims = value ? value->asArray() : nullptr;
  if (!dims)
    return error(member.key,
                 fmt::format("shape: expected an array of integers, got {}",
                             value ? value->describe() : "no such key"));
  if (dims->size() > maxRank)
    return error(member.key,
                 fmt::format("shape: expected at most {} dimensions, got {}",
                             maxRank, dims->size()));
  std::vector<int64_t> shape;
  for (const json::Value &dim : *dims) {
    const int64_t *size = dim.asInt();
    if (!size || *size < 0)
      return error(member.key,
                   fmt::format("shape: expected a whole number from 0 to "
                               "2^63 - 1, got {}",
                               dim.describe()));
    shape.push_back(*size);
  }
  return shape;
}

Expected<TensorInfo>
HeaderReader::readTensor(const json::Member &member) const {
  std::string_view name = member.key;
  if (name.empty())
    return error(name, "expected a name, got an empty one");
  if (!member.value.asObject())
    return error(name, fmt::format("expected an object with dtype, shape and "
                                   "data_offsets, got {}",
                                   member.value.describe()));

  const json::Value *dtype = member.value.find("dtype");
  const std::string *dtypeText = dtype ? dtype->asString() : nullptr;
  if (!dtypeText)
    return error(name, fmt::format("dtype: expected a string, got {}",
                                   dtype ? dtype->describe() : "no such key"));
  std::optional<Storage> storage = parseDtype(*dtypeText);
  if (!storage)
    return error(name, fmt::format("dtype: expected F32, F16 or BF16 (or an "
                                   "integer, BOOL, F64 or F8 buffer), got {}",
                                   quote(*dtypeText)));

  Expected<std::vector<int64_t>> shape = readShape(member);
  if (!shape)
    return shape.error();
  Expected<uint64_t> bytes = tensorBytes(*storage, *shape);
  if (!bytes)
    return error(name, bytes.error().message);

  const json::Value *offsets = member.value.find("data_offsets");
  const json::Array *span = offsets ? offsets->asArray() : nullptr;
  const int64_t *begin =
      span && span->size() == 2 ? (*span)[0].asInt() : nullptr;
  const int64_t *end = span && span->size() == 2 ? (*span)[1].asInt() : nullptr;
  if (!begin || !end || *begin < 0)
    return error(name,
                 fmt::format("data_offsets: expected two whole numbers, "
                             "begin and end, got {}",
                             offsets ? offsets->describe() : "no such key"));
  if (*end < *begin)
    return error(name, fmt::format("data_offsets: expected begin <= end, got "
                                   "[{}, {}]",
                                   *begin, *end));
  if (static_cast<uint64_t>(*end) > dataBytes)
    return error(name, fmt::format("data_offsets: expected an end of at most "
                                   "{} (the bytes after the header), got [{}, "
                                   "{}]; the file is truncated or damaged",
                                   dataBytes, *begin, *end));
  if (static_cast<uint64_t>(*end - *begin) != *bytes)
    return error(name,
                 fmt::format("data_offsets: expected a span of {} bytes "
                             "for shape {} of {}, got {} bytes, [{}, {}]",
                             *bytes, shapeText(*shape), storageName(*storage),
                             *end - *begin, *begin, *end));

  TensorInfo tensor;
  tensor.name = name;
  tensor.storage = *storage;
  tensor.shape = std::move(*shape);
  tensor.file = file.path();
  tensor.offset = dataBegin + static_cast<uint64_t>(*begin);
  tensor.bytes = *bytes;
  tensor.data = file.data() + tensor.offset;
  return tensor;
}

/// Spans cover the data exactly: no overlap, no hole, nothing at the end.
Expected<void>
HeaderReader::checkSpans(const std::vector<TensorInfo> &tensors) const {
  std::vector<const TensorInfo *> order;
  order.reserve(tensors.size());
  for (const TensorInfo &tensor : tensors)
    order.push_back(&tensor);
  std::sort(
      order.begin(), order.end(), [](const TensorInfo *a, const TensorInfo *b) {
        return std::pair(a->offset, a->bytes) < std::pair(b->offset, b->bytes);
      });

  uint64_t covered = dataBegin;
  const TensorInfo *previous = nullptr;
  for (const TensorInfo *tensor : order) {
    if (tensor->offset < covered)
      return error(tensor->name,
                   fmt::format("data_offsets: its bytes [{}, {}] overlap those "
                               "of tensor {}, [{}, {}]",
                               tensor->offset - dataBegin,
                               tensor->offset - dataBegin + tensor->bytes,
                               quote(previous->name),
                               previous->offset - dataBegin,
                               previous->offset - dataBegin + previous->bytes));
    if (tensor->offset > covered)
      return error(tensor->name,
                   fmt::format("data_offsets: expected to begin at {}, where "
                               "the tensor before it ends, got {}",
                               covered - dataBegin,
                               tensor->offset - dataBegin));
    covered += tensor->bytes;
    previous = tensor;
  }
  if (covered != file.size())
    return Error{
        fmt::format("{}: {}: expected the file to end there, got {} "
                    "more bytes",
                    file.path(),
                    previous ? "after the last tensor, " + quote(previous->name)
                             : "after a header without tensors",
                    file.size() - covered)};
  return {};
}

Expected<std::vector<TensorInfo>> HeaderReader::read() {
  Expected<json::Value> header = readHeader();
  if (!header)
    return header.error();

  std::vector<TensorInfo> tensors;
  for (const json::Member &member : *std::as_const(*header).asObject()) {
    if (member.key == "__metadata__") {
      if (!member.value.asObject())
        return Error{fmt::format("{}: header: __metadata__: expected an "
                                 "object, got {}",
                                 file.path(), member.value.describe())};
      continue;
    }
    Expected<TensorInfo> tensor = readTensor(member);
    if (!tensor)
      return tensor.error();
    tensors.push_back(std::move(*tensor));
  }
  Expected<void> spans = checkSpans(tensors);
  if (!spans)
    return spans.error();
  return tensors;
}

Expected<std::vector<TensorInfo>>
gptc::checkpoint::readSafetensors(const MappedFile &file) {
  return HeaderReader(file).read();
}

Expected<std::map<std::string, std::string>>
gptc::checkpoint::readShardIndex(const std::string &path) {
  Expected<json::Value> index = json::parseFile(path);
  if (!index)
    return index.error();
  Expected<json::Reader> weights =
      json::Reader(*index, path).child("weight_map");
  if (!weights)
    return weights.error();

  std::map<std::string, std::string> shardOf;
  for (const json::Member &member : *weights->value().asObject()) {
    const std::string *shard = member.value.asString();
    if (!shard)
      return weights->error(member.key, "expected a string, got " +
                                            member.value.describe());
    // A plain name cannot lead out of the folder.
    if (shard->empty() || *shard == "." || *shard == ".." ||
        shard->find_first_of(std::string_view("/\\\0", 3)) != std::string::npos)
      return weights->error(member.key,
                            "expected a file name in the same folder, got " +
                                quote(*shard));
    shardOf.emplace(member.key, *shard);
  }
  if (shardOf.empty())
    return Error{path + ": key 'weight_map': expected at least one tensor"};
  return shardOf;
}
