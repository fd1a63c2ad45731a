//===- TorchZip.cpp - What torch.save writes ------------------------------===//

#include "gptc/Checkpoint/TorchZip.h"
#include "Pickle.h"
#include "Zip.h"
#include <algorithm>
#include <fmt/format.h>
#include <unordered_set>

using namespace gptc::checkpoint;

/// Of a thousand tensors it takes a few hundred kilobytes.
static constexpr uint64_t maxPickleBytes = uint64_t(64) << 20;
static constexpr size_t maxRank = 8;
// Of the config, as of a config.json.
static constexpr size_t maxConfigDepth = 64, maxConfigValues = size_t(1) << 19;
static constexpr size_t maxConfigBytes = size_t(8) << 20;

namespace {
class TorchReader {
public:
  explicit TorchReader(const MappedFile &file) : file(file) {}

  Expected<TorchContents> read();

private:
  Expected<void> readPickle();
  Expected<void> checkArchive() const;
  Expected<const pickle::Value *> stateDict();
  bool holdsTensors(const pickle::Value &dict) const;
  Expected<TensorInfo> readTensor(const pickle::Value &value,
                                  std::string_view name) const;
  Expected<const ZipEntry *> readStorage(const pickle::Value &storage,
                                         std::string_view name) const;
  Expected<void> readConfig(const pickle::Value &root,
                            const pickle::Value *except);

  const pickle::Value &at(pickle::Ref ref) const { return pickled[ref]; }
  std::vector<int64_t> integers(pickle::Ref tuple) const;
  Error error(std::string_view rule) const {
    return Error{fmt::format("{}: {}", file.path(), rule)};
  }
  Error error(std::string_view tensor, std::string_view rule) const {
    return error(fmt::format("tensor {}: {}", quote(tensor), rule));
  }

  const MappedFile &file;
  ZipArchive archive;
  /// "ckpt/": before the names of all entries.
  std::string_view prefix;
  pickle::Pickle pickled;
  TorchContents contents;
};
} // namespace

/// The pickle's folder is the archive's one folder, whatever its name.
Expected<void> TorchReader::readPickle() {
  constexpr std::string_view name = "data.pkl";
  const ZipEntry *found = nullptr;
  for (const ZipEntry &entry : archive.entries()) {
    size_t slash = entry.name.find('/');
    if (slash == std::string_view::npos || entry.name.substr(slash + 1) != name)
      continue;
    if (found)
      return error(fmt::format("expected one entry of the name FOLDER/data.pkl,"
                               " got {} and {}",
                               quote(found->name), quote(entry.name)));
    found = &entry;
  }
  if (!found)
    return error("expected an archive of torch.save, with an entry "
                 "FOLDER/data.pkl, got a zip archive without one");
  prefix = found->name.substr(0, found->name.size() - name.size());
  if (auto checked = checkArchive(); !checked)
    return checked;
  if (found->size > maxPickleBytes)
    return error(fmt::format("entry {}: expected at most {} bytes, got {}",
                             quote(found->name), maxPickleBytes, found->size));
  auto read =
      pickle::read(file.text().substr(found->offset, found->size),
                   fmt::format("{}: {}", file.path(), quote(found->name)));
  if (!read)
    return read.error();
  pickled = std::move(*read);
  return {};
}

Expected<void> TorchReader::checkArchive() const {
  if (archive.find(fmt::format("{}constants.pkl", prefix)))
    return error("expected a state dict that torch.save wrote, got a "
                 "TorchScript archive; save model.state_dict()");
  if (const ZipEntry *order = archive.find(fmt::format("{}byteorder", prefix)))
    if (auto text = file.text().substr(order->offset, order->size);
        text != "little")
      return error("expected little-endian tensors, got byte order " +
                   quote(text));
  return {};
}

bool TorchReader::holdsTensors(const pickle::Value &dict) const {
  for (size_t i = 1; i < dict.items.size(); i += 2)
    if (at(dict.items[i]).kind == pickle::Kind::Tensor)
      return true;
  return false;
}

/// A root with a state dict in it may hold tensors of its own (nanoGPT's best
/// loss is one), so that is looked for first.
Expected<const pickle::Value *> TorchReader::stateDict() {
  const pickle::Value &root = at(pickled.root);
  if (root.kind != pickle::Kind::Dict)
    return error("expected a dict (model.state_dict(), or a checkpoint with "
                 "one), got " +
                 pickle::describe(root));
  for (std::string_view key : {"model", "state_dict", "model_state_dict"})
    if (const pickle::Value *inner = pickled.find(root, key);
        inner && inner->kind == pickle::Kind::Dict && holdsTensors(*inner))
      return inner;
  if (holdsTensors(root))
    return &root;
  return error("expected a state dict with tensors, at the root or under "
               "'model', 'state_dict' or 'model_state_dict', got none");
}

std::vector<int64_t> TorchReader::integers(pickle::Ref tuple) const {
  std::vector<int64_t> numbers;
  for (pickle::Ref item : at(tuple).items)
    numbers.push_back(at(item).integer);
  return numbers;
}

/// The entry of a storage, which must be as long as the pickle says.
Expected<const ZipEntry *>
TorchReader::readStorage(const pickle::Value &storage,
                         std::string_view name) const {
  std::string entryName =
      fmt::format("{}data/{}", prefix, at(storage.items[0]).text);
  int64_t count = at(storage.items[1]).integer;
  const ZipEntry *entry = archive.find(entryName);
  if (!entry)
    return error(name, fmt::format("expected its storage in entry {}, got no "
                                   "such entry",
                                   quote(entryName)));
  auto bytes = tensorBytes(storage.storage, {count});
  if (!bytes)
    return error(name, fmt::format("storage {}: {}", quote(entryName),
                                   bytes.error().message));
  if (*bytes != entry->size)
    return error(name, fmt::format("storage {}: expected {} bytes for {} "
                                   "elements of {}, got {}",
                                   quote(entryName), *bytes, count,
                                   storageName(storage.storage), entry->size));
  return entry;
}

/// Whether elements lie row after row. The stride of a dimension of one element
/// says nothing, and a tensor without elements lies nowhere.
static bool isContiguous(const std::vector<int64_t> &shape,
                         const std::vector<int64_t> &strides) {
  int64_t expected = 1; // fits: tensorBytes has multiplied them before
  if (std::find(shape.begin(), shape.end(), 0) != shape.end())
    return true;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected)
      return false;
    expected *= shape[i];
  }
  return true;
}

Expected<TensorInfo> TorchReader::readTensor(const pickle::Value &value,
                                             std::string_view name) const {
  if (name.empty())
    return error(name, "expected a name, got an empty one");
  const pickle::Value &storage = at(value.items[0]);
  TensorInfo tensor;
  tensor.name = name;
  tensor.storage = storage.storage;
  tensor.shape = integers(value.items[2]);
  tensor.file = file.path();
  if (tensor.shape.size() > maxRank)
    return error(name, fmt::format("expected at most {} dimensions, got {}",
                                   maxRank, tensor.shape.size()));
  auto bytes = tensorBytes(tensor.storage, tensor.shape);
  if (!bytes)
    return error(name, bytes.error().message);
  tensor.bytes = *bytes;
  std::vector<int64_t> strides = integers(value.items[3]);
  if (!isContiguous(tensor.shape, strides))
    return error(name,
                 fmt::format("expected contiguous elements, got shape {} "
                             "with strides {}; call .contiguous() before "
                             "saving",
                             shapeText(tensor.shape), shapeText(strides)));
  auto entry = readStorage(storage, name);
  if (!entry)
    return entry.error();
  int64_t offset = at(value.items[1]).integer;
  uint64_t size = blockBytes(tensor.storage);
  if (offset < 0 || static_cast<uint64_t>(offset) > (*entry)->size / size ||
      tensor.bytes > (*entry)->size - static_cast<uint64_t>(offset) * size)
    return error(name, fmt::format("expected {} bytes from element {} of its "
                                   "storage on, got a storage of {} bytes",
                                   tensor.bytes, offset, (*entry)->size));
  tensor.offset = (*entry)->offset + static_cast<uint64_t>(offset) * size;
  tensor.data = file.data() + tensor.offset;
  return tensor;
}

/// Removes `prefix` where every tensor has it.
static void removePrefix(std::vector<TensorInfo> &tensors,
                         std::string_view prefix) {
  for (const TensorInfo &tensor : tensors)
    if (!tensor.name.starts_with(prefix) || tensor.name.size() == prefix.size())
      return;
  for (TensorInfo &tensor : tensors)
    tensor.name.erase(0, prefix.size());
}

Expected<TorchContents> TorchReader::read() {
  auto opened = ZipArchive::read(file);
  if (!opened)
    return opened.error();
  archive = std::move(*opened);
  if (auto read = readPickle(); !read)
    return read.error();
  auto state = stateDict();
  if (!state)
    return state.error();
  const std::vector<pickle::Ref> &items = (*state)->items;
  std::unordered_set<std::string_view> names;
  for (size_t i = 0; i < items.size(); i += 2) {
    const pickle::Value &key = at(items[i]), &value = at(items[i + 1]);
    if (value.kind != pickle::Kind::Tensor)
      continue; // a module's extra state
    if (key.kind != pickle::Kind::String)
      return error("expected names of tensors, got " + pickle::describe(key));
    if (!names.insert(key.text).second)
      return error(key.text, "duplicate name");
    auto tensor = readTensor(value, key.text);
    if (!tensor)
      return tensor.error();
    contents.tensors.push_back(std::move(*tensor));
  }
  for (std::string_view wrapper : {"_orig_mod.", "module.", "_orig_mod."})
    removePrefix(contents.tensors, wrapper);
  if (*state != &at(pickled.root))
    if (auto read = readConfig(at(pickled.root), *state); !read)
      return read.error();
  return std::move(contents);
}

namespace {
/// Writes plain values as JSON. A value may be shared, or contain itself, so
/// values and bytes are counted as they are written, and depth is bounded.
class ConfigWriter {
public:
  explicit ConfigWriter(const pickle::Pickle &pickled) : pickled(pickled) {}

  json::Value write(const pickle::Value &value, size_t depth);
  json::Value writeDict(const pickle::Value &dict, const pickle::Value *except,
                        size_t depth);
  bool tooMuch = false;

private:
  void countValue(size_t bytes) {
    size += bytes;
    tooMuch |= ++count > maxConfigValues || size > maxConfigBytes;
  }

  const pickle::Pickle &pickled;
  size_t count = 0, size = 0;
};
} // namespace

json::Value ConfigWriter::writeDict(const pickle::Value &dict,
                                    const pickle::Value *except, size_t depth) {
  json::Object object;
  std::unordered_set<std::string_view> keys;
  for (size_t i = 0; i < dict.items.size() && !tooMuch; i += 2) {
    const pickle::Value &key = pickled[dict.items[i]];
    const pickle::Value &value = pickled[dict.items[i + 1]];
    bool plain = key.kind == pickle::Kind::String &&
                 value.kind != pickle::Kind::Tensor &&
                 value.kind != pickle::Kind::Storage &&
                 value.kind != pickle::Kind::Global && &value != except;
    countValue(key.text.size());
    if (!tooMuch && plain && keys.insert(key.text).second)
      object.push_back({std::string(key.text), write(value, depth + 1)});
  }
  return json::Value(std::move(object));
}

json::Value ConfigWriter::write(const pickle::Value &value, size_t depth) {
  countValue(value.text.size());
  tooMuch |= depth > maxConfigDepth;
  if (tooMuch)
    return {};
  switch (value.kind) {
  case pickle::Kind::Bool:
    return json::Value(value.integer != 0);
  case pickle::Kind::Int:
    return json::Value(value.integer);
  case pickle::Kind::Float:
    return json::Value(value.real);
  case pickle::Kind::String:
    return json::Value(std::string(value.text));
  case pickle::Kind::Tuple:
  case pickle::Kind::List: {
    json::Array array;
    for (pickle::Ref item : value.items)
      if (!tooMuch)
        array.push_back(write(pickled[item], depth + 1));
    return json::Value(std::move(array));
  }
  case pickle::Kind::Dict:
    return writeDict(value, nullptr, depth);
  default:
    return {};
  }
}

/// The optimizer's entries are as many as the model's and say nothing of it.
Expected<void> TorchReader::readConfig(const pickle::Value &root,
                                       const pickle::Value *except) {
  ConfigWriter writer(pickled);
  contents.config = writer.writeDict(root, except, 0);
  if (writer.tooMuch)
    return error(
        fmt::format("expected at most {} plain values beside the state "
                    "dict, of {} bytes, nested at most {} deep",
                    maxConfigValues, maxConfigBytes, maxConfigDepth));
  return {};
}

bool gptc::checkpoint::looksLikeZip(const MappedFile &file) {
  return file.text().starts_with("PK\x03\x04");
}

Expected<TorchContents> gptc::checkpoint::readTorchZip(const MappedFile &file) {
  return TorchReader(file).read();
}
