//===- Checkpoint.h - A model's weights files -------------------*- C++ -*-===//
//
// Opens what people call "the checkpoint": a Hugging Face folder (config.json
// with model.safetensors, pytorch_model.bin or model.pt, or with shards and an
// index), a single .safetensors file, a .gguf file, what torch.save writes
// (nanoGPT's ckpt.pt, a state dict), or an llm.c .bin file. The kind is decided
// by content. The files are mapped, not copied; tensors are views. Refuses
// every other kind by name where it is known (PyTorch before 1.6, pre-GGUF
// files), and every file that breaks a rule of its format, before allocating by
// any number found in it.
//
//===----------------------------------------------------------------------===//

#ifndef GPTC_CHECKPOINT_CHECKPOINT_H
#define GPTC_CHECKPOINT_CHECKPOINT_H

#include "gptc/Checkpoint/Error.h"
#include "gptc/Checkpoint/Gguf.h"
#include "gptc/Checkpoint/Json.h"
#include "gptc/Checkpoint/MappedFile.h"
#include "gptc/Checkpoint/Tensor.h"
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gptc::checkpoint {

enum class Kind { HfFolder, Safetensors, Gguf, TorchZip, LlmcBin };

/// Movable; tensors, metadata and their views live as long as the object that
/// they were moved into.
class Checkpoint {
public:
  static Expected<Checkpoint> open(const std::string &path);

  Checkpoint(Checkpoint &&) = default;
  Checkpoint &operator=(Checkpoint &&) = default;

  Kind kind() const { return checkpointKind; }
  /// As given to open.
  const std::string &path() const { return checkpointPath; }

  /// In the order of the files; names are unique.
  const std::vector<TensorInfo> &tensors() const { return tensorList; }
  /// Null when there is no tensor of that name.
  const TensorInfo *find(std::string_view name) const;

  /// The parsed config.json of a folder, or of the folder that a .safetensors
  /// file or a bare state dict lies in; what a PyTorch checkpoint holds beside
  /// its state dict (TorchZip.h); the header of an llm.c file (LlmcBin.h). Null
  /// (json) where there is none, and for GGUF.
  const json::Value &config() const { return configValue; }
  /// The path of the file that it is in; empty where there is none.
  const std::string &configPath() const { return configFile; }
  json::Reader configReader() const { return {configValue, configFile}; }

  /// Of a GGUF file; empty for the other kinds.
  const gguf::Metadata &metadata() const { return ggufMetadata; }

private:
  Checkpoint() = default;
  Expected<void> openFolder();
  Expected<void> openShards(const std::string &indexPath);
  Expected<void> openFile();
  Expected<void> openTorch(MappedFile mapped);
  Expected<void> openLlmc(MappedFile mapped);
  Expected<void> addWeights(const std::string &file);
  void add(std::vector<TensorInfo> tensors, MappedFile mapped);
  Expected<void> readConfig(const std::string &file);
  Expected<void> readConfigBeside(const std::string &file);
  Expected<void> indexTensors();

  Kind checkpointKind = Kind::HfFolder;
  std::string checkpointPath;
  std::vector<MappedFile> files;
  std::vector<TensorInfo> tensorList;
  std::unordered_map<std::string_view, size_t> tensorIndex;
  json::Value configValue;
  std::string configFile;
  gguf::Metadata ggufMetadata;
};

} // namespace gptc::checkpoint

#endif // GPTC_CHECKPOINT_CHECKPOINT_H
