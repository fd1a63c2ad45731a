//===- Families.h - One function per model family ---------------*- C++ -*-===//
//
// Each reads its hyperparameters, claims its weights, and builds @forward (or
// the entries that it documents) without module attributes. `info` is filled on
// success.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_IMPORT_FAMILIES_H
#define GPTC_IMPORT_FAMILIES_H

#include "Fields.h"
#include "ModelInfo.h"
#include "Weights.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace gptc::importer {

using Graph = checkpoint::Expected<mlir::OwningOpRef<mlir::ModuleOp>>;

/// Gpt2.cpp: config.json with model_type gpt2.
Graph importGpt2(mlir::MLIRContext &context,
                 const checkpoint::Checkpoint &checkpoint, Weights &weights,
                 ModelInfo &info);
/// Llama.cpp: config.json with model_type llama.
Graph importLlama(mlir::MLIRContext &context,
                  const checkpoint::Checkpoint &checkpoint, Weights &weights,
                  ModelInfo &info);
/// Gemma.cpp: config.json with model_type gemma or gemma2.
Graph importGemma(mlir::MLIRContext &context,
                  const checkpoint::Checkpoint &checkpoint, Weights &weights,
                  ModelInfo &info);
Graph importGemma2(mlir::MLIRContext &context,
                   const checkpoint::Checkpoint &checkpoint, Weights &weights,
                   ModelInfo &info);
/// GptNeoX.cpp: config.json with model_type gpt_neox.
Graph importGptNeoX(mlir::MLIRContext &context,
                    const checkpoint::Checkpoint &checkpoint, Weights &weights,
                    ModelInfo &info);
/// Mistral.cpp: config.json with model_type mistral.
Graph importMistral(mlir::MLIRContext &context,
                    const checkpoint::Checkpoint &checkpoint, Weights &weights,
                    ModelInfo &info);
/// Qwen.cpp: config.json with model_type qwen2 or qwen3.
Graph importQwen2(mlir::MLIRContext &context,
                  const checkpoint::Checkpoint &checkpoint, Weights &weights,
                  ModelInfo &info);
Graph importQwen3(mlir::MLIRContext &context,
                  const checkpoint::Checkpoint &checkpoint, Weights &weights,
                  ModelInfo &info);
/// Phi3.cpp: config.json with model_type phi3.
Graph importPhi3(mlir::MLIRContext &context,
                 const checkpoint::Checkpoint &checkpoint, Weights &weights,
                 ModelInfo &info);
/// LlamaGguf.cpp: general.architecture llama, qwen2, qwen3 or phi3.
Graph importLlamaGguf(mlir::MLIRContext &context,
                      const checkpoint::Checkpoint &checkpoint,
                      Weights &weights, ModelInfo &info);
/// Gpt2Gguf.cpp: general.architecture gpt2.
Graph importGpt2Gguf(mlir::MLIRContext &context,
                     const checkpoint::Checkpoint &checkpoint, Weights &weights,
                     ModelInfo &info);
/// GemmaGguf.cpp: general.architecture gemma or gemma2.
Graph importGemmaGguf(mlir::MLIRContext &context,
                      const checkpoint::Checkpoint &checkpoint,
                      Weights &weights, ModelInfo &info);
Graph importGemma2Gguf(mlir::MLIRContext &context,
                       const checkpoint::Checkpoint &checkpoint,
                       Weights &weights, ModelInfo &info);
/// NanoGpt.cpp: a PyTorch checkpoint of nanoGPT or minGPT.
Graph importNanoGpt(mlir::MLIRContext &context,
                    const checkpoint::Checkpoint &checkpoint, Weights &weights,
                    ModelInfo &info);
/// LlmcGpt2.cpp: an llm.c .bin file.
Graph importLlmcGpt2(mlir::MLIRContext &context,
                     const checkpoint::Checkpoint &checkpoint, Weights &weights,
                     ModelInfo &info);

/// AnnotatedTransformer.cpp: config.json with model_type annotated_transformer.
Graph importAnnotatedTransformer(mlir::MLIRContext &context,
                                 const checkpoint::Checkpoint &checkpoint,
                                 Weights &weights, ModelInfo &info);

/// The function of the feed-forward blocks, by its name at `key`. Refuses those
/// that no op computes.
Activation readActivation(Fields<checkpoint::json::Reader> &config,
                          std::string_view key, std::string_view absent);
/// bos_token_id and eos_token_id (an id, a list or null) of config.json.
checkpoint::Expected<void>
readSpecialTokens(const checkpoint::json::Reader &config, ModelInfo &info);
/// The key `layer_types`: whether each of `layers` has a sliding window; empty
/// where it is absent. Refuses types other than full_attention and
/// sliding_attention.
checkpoint::Expected<std::vector<bool>>
readSlidingLayers(const checkpoint::json::Reader &config, int64_t layers);
/// Refuses a `quantization_config`, by its quant_method.
checkpoint::Expected<void>
refuseQuantization(const checkpoint::json::Reader &config);
/// Whether a model that ties its head to `embedding` has another one all the
/// same: a stored tensor `head` of other numbers. As in transformers 5 that one
/// is used; a note in `info` says so, since older ones overwrite it.
bool hasOtherHead(const checkpoint::Checkpoint &checkpoint,
                  const std::string &head, const std::string &embedding,
                  ModelInfo &info);

} // namespace gptc::importer

#endif // GPTC_IMPORT_FAMILIES_H
