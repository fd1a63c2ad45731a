//===- GemmPlan.cpp - a GEMM kernel's parts and tile sizes ----------------===//
#include "GemmPlan.h"
#include "ByteKernel.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cpu;

static void readTiles(GemmPlan &p, gpt::KernelOp kernel) {
  GemmSchedule tiles = readGemmSchedule(kernel);
  p.mr = tiles.rowTile;
  p.nr = tiles.panel;
  p.mc = tiles.rowBlock;
  p.kc = tiles.depth;
  p.unit = tiles.unit;
  p.group = tiles.group;
  p.inputs = tiles.inputs;
}

/// Words of a row for weights of a storage.
static int64_t rowWords(const GemmPlan &p, gpt::Storage storage,
                        const TargetDesc &target) {
  const int64_t digits = p.digits(storage);
  int64_t words = digits ? byteRowWords({storage, digits}, p.k)
                  : storage == gpt::Storage::BF16x2 && target.bf16Dot
                      ? (p.k + 1) / 2
                      : p.k;
  return (words + 15) / 16 * 16;
}

static void findForms(GemmPlan &p, const TargetDesc &target) {
  for (const GemmSection &s : p.sections)
    for (gpt::Storage stored : s.storage) {
      gpt::Storage storage = p.multiplied(stored);
      p.unpacks |= storage != stored || (p.digits(stored) && isBlock(stored));
      p.unpacksFew |= storage != stored && storage == gpt::Storage::BF16x2;
      if (llvm::any_of(p.forms, [&](const RowForm &form) {
            return form.storage == storage;
          }))
        continue;
      RowForm form{storage, p.digits(storage), rowWords(p, storage, target)};
      form.repeat = target.pairBroadcast && !form.digits ? 2 : 1;
      p.forms.push_back(form);
    }
  int64_t packed = 0, copied = 0;
  for (RowForm &form : p.forms) {
    form.packed = packed;
    form.copied = copied;
    packed += p.packedBytes(form);
    copied += p.copiedBytes(form);
  }
}

GemmPlan gptc::cpu::planGemm(KernelContext &c, const TargetDesc &target) {
  GemmPlan p{kernelGemm(c.kernel)};
  readTiles(p, c.kernel);
  p.target = &target;
  findForms(p, target);
  return p;
}
