//===- FusionPipeline.cpp - the order of the fusions ----------------------===//
//
// QKV before attention, which hides the projections behind one op; both before
// RoPE and append, which need the sections and the cache's only reader; all
// before the epilogues, so that no leftover linear is one of Q, K, V. Argmax
// when what stands before it is in the GEMM. Norms last, when the GEMMs that
// share one have become one.
//
//===----------------------------------------------------------------------===//
#include "gptc/Fusion/Passes.h"
#include "gptc/Stepping/Passes.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace gptc;

namespace {
struct Entry {
  StringRef name;
  std::unique_ptr<Pass> (*create)(const FusionOptions &);
};

template <std::unique_ptr<Pass> (*make)()>
std::unique_ptr<Pass> plain(const FusionOptions &) {
  return make();
}

std::unique_ptr<Pass> fuseNorm(const FusionOptions &options) {
  return createFuseNorm({options.leastNormFeatures});
}
} // namespace

static ArrayRef<Entry> fusions() {
  static const Entry entries[] = {
      {"fuse-qkv", plain<gptc::createFuseQkv>},
      {"fuse-attention", plain<gptc::createFuseAttention>},
      {"fuse-rope-kv", plain<gptc::createFuseRopeKV>},
      {"fuse-epilogue", plain<gptc::createFuseEpilogue>},
      {"fuse-argmax", plain<gptc::createFuseArgmax>},
      {"fuse-norm", fuseNorm},
  };
  return entries;
}

ArrayRef<StringRef> gptc::fusionNames() {
  static const SmallVector<StringRef> names = llvm::map_to_vector(
      fusions(), [](const Entry &entry) { return entry.name; });
  return names;
}

void gptc::buildFusionPipeline(OpPassManager &pm,
                               const FusionOptions &options) {
  pm.addPass(createRemoveDropout());
  pm.addPass(createCanonicalizeAttention());
  pm.addPass(createCanonicalizeLinear());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
  for (const Entry &entry : fusions())
    if (!llvm::is_contained(options.disabled, entry.name))
      pm.addPass(entry.create(options));
  pm.addPass(createLowerRope());
  pm.addPass(createCanonicalizerPass());
  pm.addPass(createCSEPass());
}

void gptc::buildUnfusedPipeline(OpPassManager &pm) {
  pm.addPass(createRemoveDropout());
  pm.addPass(createCanonicalizeAttention());
  pm.addPass(createLowerRope());
  pm.addPass(createCSEPass());
}

namespace {
struct PipelineOptions : PassPipelineOptions<PipelineOptions> {
  ListOption<std::string> disabled{*this, "disable",
                                   llvm::cl::desc("Fusions to leave out")};
};
} // namespace

void gptc::registerFusionPipelines() {
  PassPipelineRegistration<PipelineOptions>(
      "gpt-fusion-pipeline", "The fusions of -O2",
      [](OpPassManager &pm, const PipelineOptions &options) {
        FusionOptions fusion;
        fusion.disabled.assign(options.disabled.begin(),
                               options.disabled.end());
        buildFusionPipeline(pm, fusion);
      });
  PassPipelineRegistration<>("gpt-unfused-pipeline", "What -O0 runs instead",
                             buildUnfusedPipeline);
}
