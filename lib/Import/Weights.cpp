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

Weight Weights::check(const std::string &name,
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
    refuse({fmt::format("{}: tensor {}: expected weights stored as {}, got {}",
                        tensor->file, quote(name),
                        checkpoint::weightStorageNames(),
                        checkpoint::storageName(tensor->storage))});
    return nullptr;
  }
  return tensor;
}

Weight Weights::claim(const std::string &name,
                      const std::vector<int64_t> &shape) {
  Weight tensor = check(name, shape);
  if (tensor && members.insert(tensor).second)
    list.push_back(tensor);
  return tensor;
}

std::vector<float> Weights::numbers(const std::string &name, int64_t count) {
  Weight tensor = check(name, {count});
  if (!tensor)
    return {};
  members.insert(tensor);
  std::vector<float> values(count);
  checkpoint::dequantizeRow(tensor->storage, tensor->data, values.size(),
                            values.data());
  return values;
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
