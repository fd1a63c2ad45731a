//===- FusedGemmOp.cpp - accessors of gpt.fused_gemm ----------------------===//
#include "gptc/Dialect/Gpt/Gpt.h"

using namespace mlir;
using namespace gptc::gpt;

Value FusedGemmOp::biasOf(unsigned i) {
  ArrayRef<bool> present = getHasBias();
  if (i >= present.size() || !present[i])
    return {};
  size_t index = llvm::count(present.take_front(i), true);
  return index < getBiases().size() ? getBiases()[index] : Value();
}

int64_t FusedGemmOp::inFeatures() { return getX().getType().getDimSize(1); }

int64_t FusedGemmOp::outFeatures(unsigned i) {
  auto type = cast<RankedTensorType>(getWeights()[i].getType());
  return type.getDimSize(getInOut()[i] ? 1 : 0);
}

int64_t FusedGemmOp::allOutFeatures() {
  int64_t features = 0;
  for (unsigned i = 0; i < getWeights().size(); ++i)
    features += outFeatures(i);
  return features;
}

std::optional<RopePairs> FusedGemmOp::ropeOf(unsigned i) {
  if (i < getRopes().size())
    if (auto pairs = dyn_cast<RopePairsAttr>(getRopes()[i]))
      return pairs.getValue();
  return std::nullopt;
}

Append FusedGemmOp::appendOf(unsigned i) {
  if (i < getAppends().size())
    if (auto append = dyn_cast<AppendAttr>(getAppends()[i]))
      return append.getValue();
  return Append::None;
}

unsigned FusedGemmOp::numYields(unsigned i) {
  Region &region = getEpilogues()[i];
  if (region.empty() || region.front().empty())
    return 1;
  auto yield = dyn_cast<YieldOp>(region.front().back());
  return yield ? yield.getNumOperands() : 1;
}

unsigned FusedGemmOp::numOutputs(unsigned i) {
  if (getArgmax())
    return 2;
  unsigned yields = numYields(i);
  return yields - (yields && appendOf(i) != Append::None);
}

int64_t FusedGemmOp::outColumns(unsigned i) {
  int64_t features = outFeatures(i);
  return getArgmax() ? llvm::divideCeil(features, int64_t(*getArgmax()))
                     : features;
}

ResultRange FusedGemmOp::outputsOf(unsigned i) {
  ResultRange outputs = getOutputs();
  size_t first = 0; // bounded, since an op that is not verified may have less
  for (unsigned j = 0; j < i; ++j)
    first = std::min<size_t>(first + numOutputs(j), outputs.size());
  return outputs.slice(first,
                       std::min<size_t>(numOutputs(i), outputs.size() - first));
}

Value FusedGemmOp::outputOf(unsigned i) {
  ResultRange outputs = outputsOf(i);
  return outputs.empty() ? Value() : Value(outputs.front());
}
