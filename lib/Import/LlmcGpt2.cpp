//===- LlmcGpt2.cpp - GPT-2 from llm.c's .bin files -----------------------===//
//
// LlmcBin.h names the tensors. The head is the token embedding of the real
// vocabulary: rows of padding are no tokens and have no logits. What the file
// does not say is fixed in llm.c: GELU of the tanh form, epsilon 1e-5.
//
//===----------------------------------------------------------------------===//

#include "Fields.h"
#include "Gpt2Graph.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::importer;

Graph importer::importLlmcGpt2(MLIRContext &context,
                               const checkpoint::Checkpoint &checkpoint,
                               Weights &weights, ModelInfo &info) {
  auto header = checkpoint.configReader();
  Fields fields(header);
  info.context = fields.size("max_seq_len");
  info.vocab = fields.size("vocab_size");
  info.layers = fields.size("num_layers");
  Gpt2Config config;
  config.heads = fields.size("num_heads");
  config.width = fields.size("channels");
  config.inner = 4 * config.width;
  if (fields.failed())
    return fields.error();
  Gpt2Model model = claimGpt2(config, info, /*prefix=*/"", weights);
  if (weights.failed())
    return weights.error();
  return buildGpt2(context, model, weights, info.vocab);
}
