//===- GemmPlan.cpp - a GEMM kernel's parts and tile sizes ----------------===//
#include "GemmPlan.h"
#include <numeric>

using namespace mlir;
using namespace gptc;
using namespace gptc::cpu;

int64_t GemmPlan::maxLanes() const {
  size_t n = 1;
  for (const GemmSection &s : sections)
    n = std::max(n, s.weights.size());
  return n;
}

static void chooseTiles(GemmPlan &p, const TargetDesc &t) {
  p.mr = t.tileRows();
  p.nr = t.panelWidth();
  if (p.headDim)
    p.unit = std::lcm(p.nr, p.headDim) / p.nr;
  p.group = p.unit * ((4 + p.unit - 1) / p.unit);
  // Half of L2 for packed rows; the other half holds the panel that they meet. More than 16 tiles gain nothing.
  int64_t tiles = t.l2Bytes / 2 / (p.k * 4) / p.mr;
  p.mc = p.mr * std::clamp<int64_t>(tiles, 1, 16);
  for (const GemmSection &s : p.sections)
    for (gpt::Storage st : s.storage)
      p.needsUnpack |= st != gpt::Storage::F32;
}

GemmPlan gptc::cpu::planGemm(Operation *op, const TargetDesc &t, function_ref<gpt::Storage(unsigned)> storage) {
  GemmPlan p;
  if (auto linear = dyn_cast<gpt::LinearOp>(op)) {
    p.k = linear.inFeatures();
    GemmSection s;
    s.weights = {1};
    s.biases = {linear.getBias() ? 2 : -1};
    s.storage = {storage(1)};
    s.n = linear.outFeatures();
    s.result = 0;
    p.sections.push_back(s);
    chooseTiles(p, t);
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
  for (Value r : gemm.getResiduals()) {
    (void)r;
    p.residuals.push_back(next++);
  }
  p.ropeTable = take(gemm.getRopeTable());
  p.positions = take(gemm.getPositions());
  p.sequences = take(gemm.getSequences());
  p.cache = take(gemm.getCache());
  if (gemm.getCache()) {
    p.cacheType = gemm.getCache().getType();
    p.headDim = p.cacheType.getHeadDim();
  }
  if (gemm.getRopeTable())
    p.headDim = cast<RankedTensorType>(gemm.getRopeTable().getType()).getDimSize(2);
  int result = 0;
  for (unsigned i = 0; i < gemm.numSections(); ++i) {
    GemmSection s;
    for (unsigned w = gemm.getLanes() ? 0 : i; w < (gemm.getLanes() ? weights : i + 1); ++w) {
      s.weights.push_back(1 + w);
      s.biases.push_back(biasOf[w]);
      s.storage.push_back(storage(1 + w));
      s.n = gemm.outFeatures(w);
    }
    s.rope = gemm.ropeOf(i);
    s.append = gemm.appendOf(i);
    s.epilogue = &gemm.getEpilogues()[i];
    if (s.append == gpt::Append::None)
      s.result = result++;
    p.sections.push_back(s);
  }
  chooseTiles(p, t);
  return p;
}
