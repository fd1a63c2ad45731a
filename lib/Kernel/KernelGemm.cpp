//===- KernelGemm.cpp - what a GEMM kernel consists of --------------------===//
#include "gptc/Kernel/KernelGemm.h"

using namespace mlir;
using namespace gptc;

int64_t KernelGemm::maxLanes() const {
  size_t n = 1;
  for (const KernelGemm::Section &s : sections)
    n = std::max(n, s.weights.size());
  return n;
}

int64_t gptc::headDimOf(Operation *op) {
  auto gemm = dyn_cast<gpt::FusedGemmOp>(op);
  if (!gemm)
    return 0;
  if (gemm.getRopeTable())
    return cast<RankedTensorType>(gemm.getRopeTable().getType()).getDimSize(2);
  return gemm.getCache() ? gemm.getCache().getType().getHeadDim() : 0;
}

KernelGemm gptc::kernelGemm(gpt::KernelOp kernel) {
  KernelGemm p;
  Operation *op = kernel.kernelOp();
  auto storage = [&](unsigned i) {
    auto attr = kernel.getArgAttrOfType<StringAttr>(i, "gpt.storage");
    return (attr ? gpt::symbolizeStorage(attr.getValue()) : std::nullopt)
        .value_or(gpt::Storage::F32);
  };
  if (auto linear = dyn_cast<gpt::LinearOp>(op)) {
    p.k = linear.inFeatures();
    KernelGemm::Section s;
    s.weights = {1};
    s.biases = {linear.getBias() ? 2 : -1};
    s.storage = {storage(1)};
    s.n = linear.outFeatures();
    s.result = 0;
    p.sections.push_back(s);
    return p;
  }
  auto gemm = cast<gpt::FusedGemmOp>(op);
  p.k = gemm.inFeatures();
  unsigned next = 1, weights = gemm.getWeights().size(), bias = 1 + weights;
  auto take = [&](Value v) { return v ? int(next++) : -1; };
  SmallVector<int> biasOf;
  for (unsigned i = 0; i < weights; ++i)
    biasOf.push_back(gemm.getHasBias()[i] ? int(bias++) : -1);
  next = bias;
  for (Value r : gemm.getResiduals())
    p.residuals.push_back(
        {next++, cast<RankedTensorType>(r.getType()).getRank() == 1});
  p.ropeTable = take(gemm.getRopeTable());
  p.positions = take(gemm.getPositions());
  p.sequences = take(gemm.getSequences());
  p.cache = take(gemm.getCache());
  if (gemm.getCache())
    p.cacheType = gemm.getCache().getType();
  p.norm = gemm.getNorm();
  p.gamma = take(gemm.getGamma());
  p.beta = take(gemm.getBeta());
  if (gemm.getEps())
    p.eps = gemm.getEps()->convertToDouble();
  p.headDim = headDimOf(gemm);
  p.rotary = gemm.getRotary() ? int64_t(*gemm.getRotary()) : p.headDim;
  p.argmax = gemm.getArgmax() ? int64_t(*gemm.getArgmax()) : 0;
  int result = 0;
  for (unsigned i = 0; i < gemm.numSections(); ++i) {
    KernelGemm::Section s;
    for (unsigned w = gemm.getLanes() ? 0 : i;
         w < (gemm.getLanes() ? weights : i + 1); ++w) {
      s.weights.push_back(1 + w);
      s.biases.push_back(biasOf[w]);
      s.storage.push_back(storage(1 + w));
      s.n = gemm.outFeatures(w);
    }
    s.rope = gemm.ropeOf(i);
    s.append = gemm.appendOf(i);
    s.epilogue = &gemm.getEpilogues()[i];
    s.result = result;
    s.results = gemm.numOutputs(i);
    result += s.results;
    p.sections.push_back(s);
  }
  return p;
}
