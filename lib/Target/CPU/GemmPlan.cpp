//===- GemmPlan.cpp - a GEMM kernel's parts and tile sizes ----------------===//
#include "GemmPlan.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cpu;

int64_t GemmPlan::maxLanes() const {
  size_t n = 1;
  for (const GemmSection &s : sections)
    n = std::max(n, s.weights.size());
  return n;
}

static void readTiles(GemmPlan &p, gpt::KernelOp kernel) {
  GemmSchedule tiles = readGemmSchedule(kernel);
  p.mr = tiles.rowTile;
  p.nr = tiles.panel;
  p.mc = tiles.rowBlock;
  p.unit = tiles.unit;
  p.group = tiles.group;
  for (const GemmSection &s : p.sections)
    for (gpt::Storage st : s.storage)
      p.needsUnpack |= st != gpt::Storage::F32;
}

GemmPlan gptc::cpu::planGemm(KernelContext &c) {
  GemmPlan p;
  Operation *op = c.kernel.kernelOp();
  auto storage = [&](unsigned i) {
    return c.storage(i).value_or(gpt::Storage::F32);
  };
  if (auto linear = dyn_cast<gpt::LinearOp>(op)) {
    p.k = linear.inFeatures();
    GemmSection s;
    s.weights = {1};
    s.biases = {linear.getBias() ? 2 : -1};
    s.storage = {storage(1)};
    s.n = linear.outFeatures();
    s.result = 0;
    p.sections.push_back(s);
    readTiles(p, c.kernel);
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
    GemmSection s;
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
  readTiles(p, c.kernel);
  return p;
}
