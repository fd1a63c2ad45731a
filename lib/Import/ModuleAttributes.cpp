//===- ModuleAttributes.cpp - What stands on the module -------------------===//

#include "ModuleAttributes.h"
#include "gptc/Import/TokenizerSource.h"
#include "mlir/IR/Builders.h"
#include <filesystem>
#include <fmt/format.h>

using namespace mlir;
using namespace gptc;
using namespace gptc::importer;
using checkpoint::Checkpoint;
using llvm::StringRef;

/// A C identifier from the file's or folder's name; the folder's where the file
/// is just called "model", "ckpt" or "pytorch_model".
static std::string nameFromPath(const std::string &path) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path whole = fs::absolute(path, error).lexically_normal();
  if (!whole.has_filename())
    whole = whole.parent_path();
  std::string stem = whole.filename().string();
  for (StringRef extension : {".gguf", ".safetensors", ".pt", ".pth", ".bin"})
    if (StringRef(stem).ends_with(extension))
      stem.resize(stem.size() - extension.size());
  if (stem == "model" || stem == "ckpt" || stem == "pytorch_model")
    stem = whole.parent_path().filename().string();
  for (char &c : stem)
    c = llvm::isAlnum(c) ? llvm::toLower(c) : '_';
  if (stem.empty() || stem == "gptc" || llvm::isDigit(stem.front()))
    stem = "model_" + stem;
  return stem.substr(0, mostNameBytes);
}

/// See ImportOptions::outputFolder.
static std::string pathFrom(const std::string &folder,
                            const std::string &path) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path target = fs::canonical(path, error);
  if (error)
    target = fs::absolute(path, error);
  if (folder.empty())
    return target.string();
  fs::path base = fs::canonical(folder, error);
  if (error)
    return target.string();
  auto component = [](const fs::path &p) {
    fs::path below = p.relative_path();
    return below.empty() ? fs::path() : *below.begin();
  };
  if (component(base) != component(target))
    return target.string();
  return target.lexically_relative(base).string();
}

void importer::setAttributes(ModuleOp module, const Checkpoint &checkpoint,
                             const ImportOptions &options,
                             const ModelInfo &info,
                             std::vector<std::string> &notes) {
  Builder builder(module.getContext());
  auto string = [&](StringRef key, StringRef value) {
    module->setAttr(key, builder.getStringAttr(value));
  };
  auto integer = [&](StringRef key, int64_t value) {
    module->setAttr(key, builder.getI64IntegerAttr(value));
  };
  string("gpt.name",
         options.name.empty() ? nameFromPath(checkpoint.path()) : options.name);
  string("gpt.checkpoint", pathFrom(options.outputFolder, checkpoint.path()));
  integer("gpt.context", info.context);
  integer("gpt.vocab", info.vocab);
  // Some published files name ids that the model does not have.
  auto known = [&](StringRef what, int64_t id) {
    if (id >= 0 && id < info.vocab)
      return true;
    notes.push_back(fmt::format("{} token {} is outside the vocabulary of {} "
                                "and was left out",
                                what.str(), id, info.vocab));
    return false;
  };
  if (info.bos && known("bos", *info.bos))
    integer("gpt.bos", *info.bos);
  if (info.eos && known("eos", *info.eos))
    integer("gpt.eos", *info.eos);
  std::vector<int64_t> ends;
  for (int64_t id : info.extraEnds)
    if (known("end", id))
      ends.push_back(id);
  if (!ends.empty())
    module->setAttr("gpt.extra_ends", builder.getDenseI64ArrayAttr(ends));
}

void importer::setTokenizer(ModuleOp module, const Checkpoint &checkpoint,
                            int64_t vocab, std::vector<std::string> &notes) {
  std::string why;
  auto tokenizer = loadTokenizer(checkpoint, why);
  if (!tokenizer) {
    notes.push_back("no tokenizer: " + tokenizer.error().message);
    return;
  }
  if (!*tokenizer) {
    notes.push_back("no tokenizer: " + why);
    return;
  }
  const text::TokenizerData &data = **tokenizer;
  if (data.tokens.size() > static_cast<uint64_t>(vocab)) {
    notes.push_back(fmt::format("no tokenizer: expected at most the {} tokens "
                                "of the model, got {} in '{}'",
                                vocab, data.tokens.size(),
                                tokenizerFile(checkpoint)));
    return;
  }
  Builder builder(module.getContext());
  module->setAttr("gpt.tokenizer",
                  builder.getStringAttr(tokenizerFile(checkpoint)));
  if (!data.chatTemplate.empty())
    module->setAttr("gpt.chat_template",
                    builder.getStringAttr(data.chatTemplate));
}
