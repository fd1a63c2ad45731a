//===- Weights.cpp - The stored tensors that a model claims ---------------===//

#include "Weights.h"
#include <fmt/format.h>

using namespace gptc;
using namespace gptc::importer;
using checkpoint::Error;
using checkpoint::quote;
using checkpoint::TensorInfo;

void Weights::refuse(Error error) {
  if (!first)
    first = std::move(error);
}

/// The matrices of GPT-2's layers have two layouts under the same names.
static const char *transposedHint(std::string_view name,
                                  const std::vector<int64_t> &wanted,
                                  const std::vector<int64_t> &got) {
  bool isTransposed = wanted.size() == 2 &&
                      got == std::vector<int64_t>{wanted[1], wanted[0]} &&
                      name.find(".c_") != std::string_view::npos;
  return isTransposed
             ? ", transposed: nanoGPT and minGPT store it as [out, in], "
               "Hugging Face's GPT-2 as [in, out]"
             : "";
}

Weight Weights::check(const std::string &name,
                      const std::vector<int64_t> &shape) {
  Weight tensor = checkpoint.find(name);
  if (!tensor) {
    if (!hopeless())
      absent.push_back({name, shape});
    refuse({fmt::format("{}: tensor {} is missing: expected shape {}",
                        checkpoint.path(), quote(name),
                        checkpoint::shapeText(shape))});
    return nullptr;
  }
  if (tensor->shape != shape) {
    unfit[tensor] = "expected shape " + checkpoint::shapeText(shape);
    refuse({fmt::format("{}: tensor {}: expected shape {}, got {}{}",
                        tensor->file, quote(name), checkpoint::shapeText(shape),
                        checkpoint::shapeText(tensor->shape),
                        transposedHint(name, shape, tensor->shape))});
    return nullptr;
  }
  if (!checkpoint::isWeightStorage(tensor->storage)) {
    unfit[tensor] = "no storage of weights";
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

const std::string *Weights::whyUnfit(const TensorInfo &tensor) const {
  auto found = unfit.find(&tensor);
  return found == unfit.end() ? nullptr : &found->second;
}
