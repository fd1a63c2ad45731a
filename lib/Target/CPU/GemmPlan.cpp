//===- GemmPlan.cpp - a GEMM kernel's parts and tile sizes ----------------===//
#include "GemmPlan.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cpu;

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
  GemmPlan p{kernelGemm(c.kernel)};
  readTiles(p, c.kernel);
  return p;
}
