//===- Checkpoint.cpp - A model's weights files ---------------------------===//

#include "gptc/Checkpoint/Checkpoint.h"
#include "gptc/Checkpoint/LlmcBin.h"
#include "gptc/Checkpoint/Safetensors.h"
#include "gptc/Checkpoint/TorchZip.h"
#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <set>

using namespace gptc::checkpoint;
namespace fs = std::filesystem;

static constexpr std::string_view accepted =
    "a folder with config.json and .safetensors, pytorch_model.bin or "
    "model.pt, a .safetensors file, a .gguf file, a PyTorch ckpt.pt or an "
    "llm.c .bin file";

/// std::filesystem without exceptions: what cannot be looked at is not there.
static bool isFolder(const fs::path &path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}
static bool isThere(const fs::path &path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

static bool startsWithBytes(const MappedFile &file, std::string_view bytes) {
  return file.text().starts_with(bytes);
}

/// Names a format that is known, but not read by this version.
static std::string_view knownFormat(const MappedFile &file) {
  // The pickled number that torch.save began with before it wrote zip files.
  if (startsWithBytes(file, "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20"))
    return "a PyTorch file from before 1.6: load it and torch.save it again";
  if (startsWithBytes(file, "\x80"))
    return "a pickle: expected what torch.save writes";
  for (std::string_view magic : {"tjgg", "lmgg", "fmgg", "algg"})
    if (startsWithBytes(file, magic))
      return "a ggml file older than GGUF";
  return {};
}

/// A header length that fits, then the brace of the header.
static bool looksLikeSafetensors(const MappedFile &file) {
  if (file.size() < 10 || file.data()[8] != '{')
    return false;
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i)
    length = length << 8 | file.data()[i];
  return length <= file.size() - 8;
}

Expected<Checkpoint> Checkpoint::open(const std::string &path) {
  Checkpoint checkpoint;
  checkpoint.checkpointPath = path;
  Expected<void> opened =
      isFolder(path) ? checkpoint.openFolder() : checkpoint.openFile();
  if (!opened)
    return opened.error();
  Expected<void> indexed = checkpoint.indexTensors();
  if (!indexed)
    return indexed.error();
  return checkpoint;
}

const TensorInfo *Checkpoint::find(std::string_view name) const {
  auto found = tensorIndex.find(name);
  return found == tensorIndex.end() ? nullptr : &tensorList[found->second];
}

Expected<void> Checkpoint::readConfig(const std::string &file) {
  Expected<json::Value> config = json::parseFile(file);
  if (!config)
    return config.error();
  if (!std::as_const(*config).asObject())
    return Error{fmt::format("{}: expected an object, got {}", file,
                             config->describe())};
  configValue = std::move(*config);
  configFile = file;
  return {};
}

/// The config.json of the folder that `file` lies in, if there is one.
Expected<void> Checkpoint::readConfigBeside(const std::string &file) {
  fs::path config = fs::path(file).parent_path() / "config.json";
  return isThere(config) ? readConfig(config.string()) : Expected<void>();
}

void Checkpoint::add(std::vector<TensorInfo> tensors, MappedFile mapped) {
  tensorList.insert(tensorList.end(), std::move_iterator(tensors.begin()),
                    std::move_iterator(tensors.end()));
  files.push_back(std::move(mapped));
}

/// A file of a folder: safetensors, or a state dict that torch.save wrote.
Expected<void> Checkpoint::addWeights(const std::string &file) {
  Expected<MappedFile> mapped = MappedFile::open(file);
  if (!mapped)
    return mapped.error();
  if (looksLikeZip(*mapped)) {
    Expected<TorchContents> contents = readTorchZip(*mapped);
    if (!contents)
      return contents.error();
    add(std::move(contents->tensors), std::move(*mapped));
    return {};
  }
  if (!file.ends_with(".safetensors") && !looksLikeSafetensors(*mapped)) {
    std::string_view known = knownFormat(*mapped);
    return Error{fmt::format(
        "{}: expected a zip archive of torch.save, got {}", file,
        known.empty() ? "a file of another format, or a damaged one" : known)};
  }
  Expected<std::vector<TensorInfo>> tensors = readSafetensors(*mapped);
  if (!tensors)
    return tensors.error();
  add(std::move(*tensors), std::move(*mapped));
  return {};
}

Expected<void> Checkpoint::openTorch(MappedFile mapped) {
  checkpointKind = Kind::TorchZip;
  Expected<TorchContents> contents = readTorchZip(mapped);
  if (!contents)
    return contents.error();
  add(std::move(contents->tensors), std::move(mapped));
  // Hyperparameters in the file belong to it; others lie beside it.
  if (contents->config.find("model_args")) {
    configValue = std::move(contents->config);
    configFile = checkpointPath;
    return {};
  }
  return readConfigBeside(checkpointPath);
}

Expected<void> Checkpoint::openLlmc(MappedFile mapped) {
  checkpointKind = Kind::LlmcBin;
  Expected<LlmcContents> contents = readLlmcBin(mapped);
  if (!contents)
    return contents.error();
  add(std::move(contents->tensors), std::move(mapped));
  configValue = std::move(contents->config);
  configFile = checkpointPath;
  return {};
}

Expected<void> Checkpoint::openFile() {
  Expected<MappedFile> mapped = MappedFile::open(checkpointPath);
  if (!mapped)
    return mapped.error();

  // By content; the name only decides whose rules a damaged file is told.
  if (startsWithBytes(*mapped, "GGUF") || checkpointPath.ends_with(".gguf")) {
    checkpointKind = Kind::Gguf;
    Expected<gguf::Contents> contents = gguf::read(*mapped);
    if (!contents)
      return contents.error();
    tensorList = std::move(contents->tensors);
    ggufMetadata = std::move(contents->metadata);
    files.push_back(std::move(*mapped));
    return {};
  }
  if (looksLikeSafetensors(*mapped) ||
      checkpointPath.ends_with(".safetensors")) {
    checkpointKind = Kind::Safetensors;
    Expected<void> read = readConfigBeside(checkpointPath);
    return read ? addWeights(checkpointPath) : read;
  }
  if (looksLikeZip(*mapped))
    return openTorch(std::move(*mapped));
  if (looksLikeLlmcBin(*mapped))
    return openLlmc(std::move(*mapped));

  std::string_view known = knownFormat(*mapped);
  if (!known.empty())
    return Error{fmt::format("{}: expected {}; got {}", checkpointPath,
                             accepted, known)};
  return Error{fmt::format(
      "{}: unknown checkpoint: expected {}; got {}", checkpointPath, accepted,
      mapped->size() == 0 ? "an empty file" : "a file of another format")};
}

/// The .safetensors files of a folder, sorted.
static std::vector<std::string> safetensorsIn(const fs::path &folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().extension() == ".safetensors")
      names.push_back(entry->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

Expected<void> Checkpoint::openFolder() {
  checkpointKind = Kind::HfFolder;
  fs::path folder(checkpointPath);
  if (!isThere(folder / "config.json"))
    return Error{fmt::format(
        "{}: unknown checkpoint: expected {}; got a "
        "folder without config.json{}",
        checkpointPath, accepted,
        isThere(folder / "ckpt.pt") ? "; name the ckpt.pt in it" : "")};
  Expected<void> config = readConfig((folder / "config.json").string());
  if (!config)
    return config;

  if (isThere(folder / "model.safetensors"))
    return addWeights((folder / "model.safetensors").string());
  fs::path index = folder / "model.safetensors.index.json";
  if (isThere(index))
    return openShards(index.string());

  std::vector<std::string> names = safetensorsIn(folder);
  if (names.size() == 1)
    return addWeights((folder / names.front()).string());
  if (!names.empty())
    return Error{fmt::format("{}: expected model.safetensors or "
                             "model.safetensors.index.json, got {} other "
                             ".safetensors files and no index",
                             checkpointPath, names.size())};
  // The second is what people call a state dict of their own.
  for (const char *stateDict : {"pytorch_model.bin", "model.pt"})
    if (isThere(folder / stateDict))
      return addWeights((folder / stateDict).string());
  index = folder / "pytorch_model.bin.index.json";
  if (isThere(index))
    return openShards(index.string());
  for (const char *other : {"tf_model.h5", "flax_model.msgpack"})
    if (isThere(folder / other))
      return Error{fmt::format("{}: expected model.safetensors, got {}, not "
                               "read by this version; convert it to "
                               "safetensors",
                               checkpointPath, other)};
  return Error{fmt::format("{}: expected model.safetensors, pytorch_model.bin, "
                           "model.pt or the index of shards beside "
                           "config.json, got none",
                           checkpointPath)};
}

Expected<void> Checkpoint::openShards(const std::string &indexPath) {
  Expected<std::map<std::string, std::string>> shardOf =
      readShardIndex(indexPath);
  if (!shardOf)
    return shardOf.error();
  std::set<std::string> shards;
  for (const auto &[tensor, shard] : *shardOf)
    shards.insert(shard);

  // Every tensor of a shard is in the index, and where the index says.
  std::set<std::string> seen;
  for (const std::string &shard : shards) {
    size_t first = tensorList.size();
    Expected<void> added =
        addWeights((fs::path(checkpointPath) / shard).string());
    if (!added)
      return added;
    for (size_t i = first; i < tensorList.size(); ++i) {
      const TensorInfo &tensor = tensorList[i];
      auto entry = shardOf->find(tensor.name);
      if (entry == shardOf->end() || entry->second != shard)
        return Error{fmt::format(
            "{}: tensor {}: expected it in the index {} with this file, got {}",
            tensor.file, quote(tensor.name), indexPath,
            entry == shardOf->end() ? "no such tensor"
                                    : "file " + quote(entry->second))};
      seen.insert(tensor.name);
    }
  }
  for (const auto &[tensor, shard] : *shardOf)
    if (!seen.contains(tensor))
      return Error{fmt::format("{}: tensor {}: expected it in {}, got no such "
                               "tensor there; the shard and the index do not "
                               "belong together",
                               indexPath, quote(tensor), quote(shard))};
  return {};
}

Expected<void> Checkpoint::indexTensors() {
  tensorIndex.reserve(tensorList.size());
  for (size_t i = 0; i < tensorList.size(); ++i) {
    auto [entry, inserted] = tensorIndex.emplace(tensorList[i].name, i);
    if (!inserted)
      return Error{fmt::format("{}: tensor {}: duplicate name, also in {}",
                               tensorList[i].file, quote(tensorList[i].name),
                               tensorList[entry->second].file)};
  }
  return {};
}
