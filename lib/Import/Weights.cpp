//===- Weights.cpp - The stored tensors that a model claims ---------------===//

#include "Weights.h"
#include <fmt/format.h>

using namespace gptc;
using namespace gptc::importer;
using checkpoint::Error;
using checkpoint::quote;

void Weights::refuse(Error error) {
  if (!first)
    first = std::move(error);
}

Weight Weights::claim(const std::string &name,
                      const std::vector<int64_t> &shape) {
  if (failed())
    return nullptr;
  Weight tensor = checkpoint.find(name);
  if (!tensor) {
    refuse({fmt::format("{}: tensor {} is missing: expected shape {}",
                        checkpoint.path(), quote(name),
                        checkpoint::shapeText(shape))});
    return nullptr;
  }
  if (tensor->shape != shape) {
    refuse({fmt::format("{}: tensor {}: expected shape {}, got {}",
                        tensor->file, quote(name), checkpoint::shapeText(shape),
                        checkpoint::shapeText(tensor->shape))});
    return nullptr;
  }
  if (!checkpoint::isWeightStorage(tensor->storage)) {
    refuse({fmt::format("{}: tensor {}: expected weights stored as f32, f16, "
                        "bf16, q8_0, q4_0 or q4_1, got {}",
                        tensor->file, quote(name),
                        checkpoint::storageName(tensor->storage))});
    return nullptr;
  }
  if (members.insert(tensor).second)
    list.push_back(tensor);
  return tensor;
}

Weight Weights::claimIfStored(const std::string &name,
                              const std::vector<int64_t> &shape) {
  return stored(name) ? claim(name, shape) : nullptr;
}

std::vector<std::string> Weights::unclaimed() const {
  std::vector<std::string> names;
  for (const checkpoint::TensorInfo &tensor : checkpoint.tensors())
    if (!members.contains(&tensor))
      names.push_back(tensor.name);
  return names;
}
