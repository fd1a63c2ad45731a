//===- Import.cpp - From a checkpoint to a gpt graph ----------------------===//
//
// Chooses the family, and adds what all families share.
//
//===----------------------------------------------------------------------===//

#include "gptc/Import/Import.h"
#include "Families.h"
#include "ModuleAttributes.h"
#include "TensorUses.h"
#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

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
    {"mistral", "MistralForCausalLM", importMistral},
    {"qwen2", "Qwen2ForCausalLM", importQwen2},
    {"qwen3", "Qwen3ForCausalLM", importQwen3},
    {"phi3", "Phi3ForCausalLM", importPhi3},
    {"gemma", "GemmaForCausalLM", importGemma},
    {"gemma2", "Gemma2ForCausalLM", importGemma2},
    {"gpt_neox", "GPTNeoXForCausalLM", importGptNeoX},
    {"annotated_transformer", "EncoderDecoder", importAnnotatedTransformer},
};
static constexpr Family ggufFamilies[] = {
    {"llama", nullptr, importLlamaGguf}, {"qwen2", nullptr, importLlamaGguf},
    {"qwen3", nullptr, importLlamaGguf}, {"phi3", nullptr, importLlamaGguf},
    {"gemma", nullptr, importGemmaGguf}, {"gemma2", nullptr, importGemma2Gguf},
    {"gpt2", nullptr, importGpt2Gguf},
};
/// Files that do not name their architecture, but have only one.
static constexpr Family nanoGptFamily = {"nanogpt", nullptr, importNanoGpt};
static constexpr Family llmcFamily = {"gpt2", nullptr, importLlmcGpt2};

static std::string namesOf(llvm::ArrayRef<Family> families) {
  return llvm::join(llvm::map_range(families,
                                    [](const Family &family) {
                                      return StringRef(family.architecture);
                                    }),
                    ", ");
}

std::string gptc::supportedArchitectures() {
  return namesOf(hfFamilies) + "; as GGUF: " + namesOf(ggufFamilies) +
         "; as ckpt.pt: nanogpt; as llm.c .bin: gpt2";
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
    return config.error(
        "model_type", "is missing: expected one of " + namesOf(hfFamilies) +
                          (config.has("model")
                               ? "; of minGPT, name the model.pt in the folder"
                               : ""));
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
  if (checkpoint.kind() == Kind::LlmcBin)
    return &llmcFamily;
  auto config = checkpoint.configReader();
  const bool named = config.has("model_type") || config.has("architectures");
  // Its state dict never had a config.json.
  if (!named && checkpoint.find("src_embed.0.lut.weight"))
    return Error{checkpoint.path() +
                 ": the tensors are The Annotated Transformer's: expected a "
                 "config.json beside them that says {\"model_type\": "
                 "\"annotated_transformer\", \"h\": 8} with its number of "
                 "attention heads"};
  // A file of torch.save is whose its config.json says, if it says so.
  if (checkpoint.kind() == Kind::TorchZip && !named)
    return &nanoGptFamily;
  if (checkpoint.configPath().empty())
    return Error{checkpoint.path() +
                 ": no config.json beside the weights: expected the one that "
                 "the model was published with"};
  auto name = readHfArchitecture(config);
  if (!name)
    return name.error();
  for (const Family &family : hfFamilies)
    if (name->second == family.architecture)
      return &family;
  return config.error(name->first, unsupported(hfFamilies, name->second));
}

bool gptc::isModelName(StringRef name) {
  return !name.empty() && name != "gptc" && name.size() <= mostNameBytes &&
         !llvm::isDigit(name.front()) && llvm::all_of(name, [](char c) {
           return llvm::isAlnum(c) || c == '_';
         });
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
  std::vector<TensorUse> uses;
  if (graph || !weights.missing().empty() || !weights.claimed().empty())
    uses = tensorUses(checkpoint, weights);
  if (options.tensors)
    *options.tensors = uses;
  if (!graph)
    return graph.error();

  Imported result;
  result.module = std::move(*graph);
  result.architecture = (*family)->architecture;
  result.layers = info.layers;
  result.notes = info.notes;
  setAttributes(*result.module, checkpoint, options, info, result.notes);
  setTokenizer(*result.module, checkpoint, info.vocab, result.notes);
  for (Weight weight : weights.claimed()) {
    uint64_t elements = 1;
    for (int64_t dimension : weight->shape)
      elements *= static_cast<uint64_t>(dimension);
    result.parameters += elements;
    result.storedBytes += weight->bytes;
  }
  for (const TensorUse &use : uses)
    if (use.kind == TensorUse::Unused)
      result.unused.push_back(use.name);
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
