//===- Import.cpp - From a checkpoint to a gpt graph ----------------------===//
//
// Chooses the family, and writes what all families share: module attributes,
// notes and sums.
//
//===----------------------------------------------------------------------===//

#include "gptc/Import/Import.h"
#include "Families.h"
#include "gptc/Import/TokenizerSource.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include <filesystem>

using namespace mlir;
using namespace gptc;
using namespace gptc::importer;
using checkpoint::Checkpoint;
using checkpoint::Error;
using checkpoint::Expected;
using checkpoint::Kind;
using llvm::StringRef;

namespace {
/// How a family's checkpoint names itself.
struct Family {
  const char *architecture; // model_type, or general.architecture
  const char *modelClass;   // config.json's architectures[0]; null for GGUF
  Graph (*import)(MLIRContext &, const Checkpoint &, Weights &, ModelInfo &);
};
} // namespace

static constexpr Family hfFamilies[] = {
    {"gpt2", "GPT2LMHeadModel", importGpt2},
    {"llama", "LlamaForCausalLM", importLlama},
};
static constexpr Family ggufFamilies[] = {
    {"llama", nullptr, importLlamaGguf},
};

static std::string namesOf(llvm::ArrayRef<Family> families) {
  return llvm::join(llvm::map_range(families,
                                    [](const Family &family) {
                                      return StringRef(family.architecture);
                                    }),
                    ", ");
}

std::string gptc::supportedArchitectures() {
  return namesOf(hfFamilies) + "; as GGUF: " + namesOf(ggufFamilies);
}

/// The key that names the architecture and its value.
static Expected<std::pair<std::string, std::string>>
readHfArchitecture(const checkpoint::json::Reader &config) {
  if (config.has("model_type")) {
    auto type = config.string("model_type");
    if (!type)
      return type.error();
    return std::pair<std::string, std::string>("model_type", *type);
  }
  if (!config.has("architectures"))
    return config.error("model_type",
                        "is missing: expected one of " + namesOf(hfFamilies));
  auto classes = config.array("architectures");
  if (!classes)
    return classes.error();
  const std::string *name =
      (*classes)->empty() ? nullptr : (*classes)->front().asString();
  if (!name)
    return config.error("architectures", "expected a list of class names");
  for (const Family &family : hfFamilies)
    if (*name == family.modelClass)
      return std::pair<std::string, std::string>("architectures",
                                                 family.architecture);
  return std::pair<std::string, std::string>("architectures", *name);
}

static Expected<const Family *> chooseFamily(const Checkpoint &checkpoint) {
  auto unsupported = [](llvm::ArrayRef<Family> families,
                        const std::string &name) {
    return fmt::format("architecture {} is not supported: expected {}",
                       checkpoint::quote(name),
                       families.size() == 1 ? namesOf(families)
                                            : "one of " + namesOf(families));
  };
  if (checkpoint.kind() == Kind::Gguf) {
    auto name = checkpoint.metadata().string("general.architecture");
    if (!name)
      return name.error();
    for (const Family &family : ggufFamilies)
      if (*name == family.architecture)
        return &family;
    return checkpoint.metadata().error("general.architecture",
                                       unsupported(ggufFamilies, *name));
  }
  if (checkpoint.configPath().empty())
    return Error{checkpoint.path() +
                 ": no config.json beside the weights: expected the one that "
                 "the model was published with"};
  auto config = checkpoint.configReader();
  auto named = readHfArchitecture(config);
  if (!named)
    return named.error();
  for (const Family &family : hfFamilies)
    if (named->second == family.architecture)
      return &family;
  return config.error(named->first, unsupported(hfFamilies, named->second));
}

bool gptc::isModelName(StringRef name) {
  return !name.empty() && !llvm::isDigit(name.front()) &&
         llvm::all_of(name,
                      [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

/// A C identifier from the file's or folder's name; the folder's where the file
/// is just called "model".
static std::string nameFromPath(const std::string &path) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path whole = fs::absolute(path, error).lexically_normal();
  if (!whole.has_filename())
    whole = whole.parent_path();
  std::string stem = whole.filename().string();
  for (StringRef extension : {".gguf", ".safetensors"})
    if (StringRef(stem).ends_with(extension))
      stem.resize(stem.size() - extension.size());
  if (stem == "model")
    stem = whole.parent_path().filename().string();
  for (char &c : stem)
    c = llvm::isAlnum(c) ? llvm::toLower(c) : '_';
  if (stem.empty() || llvm::isDigit(stem.front()))
    stem = "model_" + stem;
  return stem;
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

static void setAttributes(ModuleOp module, const Checkpoint &checkpoint,
                          const ImportOptions &options, const ModelInfo &info,
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

static void setTokenizer(ModuleOp module, const Checkpoint &checkpoint,
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

/// Buffers that transformers once saved beside the parameters.
static bool isBuffer(StringRef name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with(".rotary_emb.inv_freq");
}

Expected<Imported> gptc::importCheckpoint(MLIRContext &context,
                                          const Checkpoint &checkpoint,
                                          const ImportOptions &options) {
  auto family = chooseFamily(checkpoint);
  if (!family)
    return family.error();
  Weights weights(checkpoint);
  ModelInfo info;
  auto graph = (*family)->import(context, checkpoint, weights, info);
  if (!graph)
    return graph.error();

  Imported result;
  result.module = std::move(*graph);
  result.architecture = (*family)->architecture;
  result.layers = info.layers;
  setAttributes(*result.module, checkpoint, options, info, result.notes);
  setTokenizer(*result.module, checkpoint, info.vocab, result.notes);
  for (Weight weight : weights.claimed()) {
    uint64_t elements = 1;
    for (int64_t dimension : weight->shape)
      elements *= static_cast<uint64_t>(dimension);
    result.parameters += elements;
    result.storedBytes += weight->bytes;
  }
  for (std::string &name : weights.unclaimed())
    if (!isBuffer(name))
      result.unused.push_back(std::move(name));
  if (failed(verify(*result.module)))
    return Error{checkpoint.path() + ": internal error: the imported graph "
                                     "does not verify"};
  return result;
}

void gptc::printModel(ModuleOp module, llvm::raw_ostream &os) {
  OpPrintingFlags flags;
  flags.enableDebugInfo(/*enable=*/true, /*prettyForm=*/false);
  flags.printNameLocAsPrefix();
  module->print(os, flags);
  os << '\n';
}
