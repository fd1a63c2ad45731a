//===- HostWeights.cpp - made-up weights of a host ------------------------===//
//
// Matrices [N, K] are uniform with variance 1 / K, so that activations keep
// their size through the layers. Vectors are scales or biases, which cannot be
// told apart: around 1.
//
//===----------------------------------------------------------------------===//

#include "HostWeights.h"
#include <cmath>
#include <cstring>
#include <random>

using namespace mlir;
using namespace gptc;
using namespace gptc::check;

std::optional<HostWeights>
gptc::check::makeHostWeights(const PackageModel &plan) {
  HostWeights weights;
  std::map<std::string, reference::TensorRef> tensors;
  // Its numbers are fixed by the standard, unlike those of distributions.
  std::mt19937 random(1);
  for (const PackedWeight &weight : plan.weights) {
    ml_program::GlobalOp global = weight.view.global;
    auto stored = global->getAttrOfType<gpt::StoredAttr>("gpt.stored");
    std::optional<Attribute> value = global.getValue();
    if ((stored && !stored.getFile().empty()) ||
        (value && !isa<ml_program::ExternAttr>(*value)) ||
        weight.desc.source_dtype != GPTC_F32)
      return std::nullopt;
    // Sections of one global are several weights of a package.
    std::string symbol = global.getSymName().str();
    if (tensors.contains(symbol))
      continue;
    auto shape = cast<RankedTensorType>(global.getType()).getShape();
    std::optional<int64_t> count = reference::elementCount(shape);
    if (!count)
      return std::nullopt;
    bool vector = shape.size() == 1;
    double center = vector ? 1.0 : 0.0;
    double radius =
        vector ? 0.3 : std::sqrt(3.0 / std::max<int64_t>(shape.back(), 1));
    host::Array array{weight.name, GPTC_F32, {shape.begin(), shape.end()}, {}};
    array.data.resize(*count * sizeof(float));
    std::vector<double> elements(*count);
    for (int64_t i = 0; i < *count; ++i) {
      double unit = 2.0 * random() / random.max() - 1.0;
      float element = static_cast<float>(center + radius * unit);
      std::memcpy(&array.data[i * sizeof(float)], &element, sizeof(float));
      elements[i] = element;
    }
    tensors[symbol] = reference::makeTensor(array.shape, std::move(elements));
    weights.arrays.push_back(std::move(array));
  }
  if (weights.arrays.empty())
    return std::nullopt;
  weights.tensors = reference::NamedWeights(std::move(tensors));
  return weights;
}
