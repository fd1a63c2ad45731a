//===- SameMeaningTest.cpp - passes keep what a model computes ------------===//
//
// Small imported models: @forward as imported, against @step after stepping and
// fusion (all fusions, none, and all but one), both evaluated in double. The
// only differences are the order of sums and products, so the tolerance is a
// small multiple of double's.
//
//===----------------------------------------------------------------------===//
#include "gptc/Fusion/Passes.h"
#include "gptc/Import/Import.h"
#include "gptc/Reference/Evaluator.h"
#include "gptc/Stepping/Passes.h"
#include "mlir/Pass/PassManager.h"
#include <gtest/gtest.h>

using namespace gptc::reference;
using mlir::func::FuncOp;

namespace {
constexpr double kTolerance = 1e-10;
const std::vector<int64_t> kPrompt = {5, 1, 77, 100, 3, 3, 90, 42, 11};

class SameMeaningTest : public testing::TestWithParam<const char *> {
protected:
  void SetUp() override {
    auto opened = gptc::checkpoint::Checkpoint::open(
        std::string(GPTC_GOLDEN_DIR) + "/" + GetParam());
    ASSERT_TRUE(bool(opened)) << opened.error().message;
    checkpoint.emplace(std::move(*opened));
    auto result = gptc::importCheckpoint(context, *checkpoint, {});
    ASSERT_TRUE(bool(result)) << result.error().message;
    module = std::move(result->module);
    weights.emplace(*checkpoint);
    expected = logits("forward", {ids(kPrompt)});
    ASSERT_FALSE(expected.empty());
    width = expected.size() / kPrompt.size();
  }

  static TensorRef ids(std::vector<int64_t> values) {
    int64_t count = values.size();
    return makeInts({count}, std::move(values));
  }

  std::vector<double> logits(llvm::StringRef name,
                             std::vector<TensorRef> args) {
    auto function = module->lookupSymbol<FuncOp>(name);
    EXPECT_TRUE(function) << "no @" << name.str();
    if (!function)
      return {};
    auto results = Evaluator(&*weights).run(function, args);
    EXPECT_TRUE(mlir::succeeded(results));
    return mlir::succeeded(results) ? results->front()->data
                                    : std::vector<double>();
  }

  void compile(llvm::function_ref<void(mlir::OpPassManager &)> build) {
    mlir::PassManager pm(&context);
    pm.addPass(gptc::createRemoveDropout());
    pm.addPass(gptc::createDeriveStep());
    build(pm);
    ASSERT_TRUE(mlir::succeeded(pm.run(*module)));
    auto step = module->lookupSymbol<FuncOp>("step");
    ASSERT_TRUE(step);
    auto type =
        mlir::cast<gptc::gpt::KVCacheType>(step.getArgumentTypes().back());
    cache = makeCache(type.getLayers(), type.getHeads(), type.getHeadDim());
  }

  /// Row t of the logits of kPrompt.
  void expectRow(llvm::ArrayRef<double> got, size_t t) {
    ASSERT_EQ(got.size(), width);
    for (size_t i = 0; i < width; ++i)
      ASSERT_TRUE(std::abs(got[i] - expected[t * width + i]) <= kTolerance)
          << "token " << t << ", logit " << i << ": got " << got[i]
          << ", expected " << expected[t * width + i];
  }

  /// The prompt in two pieces, wanting some rows of each, out of order.
  void expectSameInPieces() {
    auto piece = [&](int64_t first, int64_t count,
                     std::vector<int64_t> wanted) {
      std::vector<int64_t> tokens, positions;
      for (int64_t t = first; t < first + count; ++t) {
        tokens.push_back(kPrompt[t]);
        positions.push_back(t);
      }
      auto got = logits("step", {ids(tokens), ids(positions),
                                 ids(std::vector<int64_t>(count, 0)),
                                 ids(wanted), cache});
      ASSERT_EQ(got.size(), wanted.size() * width);
      for (auto [i, row] : llvm::enumerate(wanted))
        expectRow(llvm::ArrayRef(got).slice(i * width, width), first + row);
    };
    piece(0, 4, {3, 0});
    piece(4, 1, {0});
    piece(5, 4, {0, 1, 2, 3});
  }

  mlir::MLIRContext context;
  std::optional<gptc::checkpoint::Checkpoint> checkpoint;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::optional<CheckpointWeights> weights;
  std::vector<double> expected;
  size_t width = 0;
  TensorRef cache;
};
} // namespace

/// The default is for wider models.
static gptc::FusionOptions withNorms() {
  gptc::FusionOptions options;
  options.leastNormFeatures = 1;
  return options;
}

static void fuseAll(mlir::OpPassManager &pm) {
  gptc::buildFusionPipeline(pm, withNorms());
}

TEST_P(SameMeaningTest, Unfused) {
  compile(gptc::buildUnfusedPipeline);
  expectSameInPieces();
}

TEST_P(SameMeaningTest, Fused) {
  compile(fuseAll);
  // Four GEMMs and one attention in each of the two layers, and the LM head.
  unsigned gemms = 0, attentions = 0, left = 0;
  module->walk([&](mlir::Operation *op) {
    gemms += mlir::isa<gptc::gpt::FusedGemmOp>(op);
    attentions += mlir::isa<gptc::gpt::FlashAttentionOp>(op);
    left += mlir::isa<gptc::gpt::LinearOp, gptc::gpt::MatmulOp,
                      gptc::gpt::RopeOp, gptc::gpt::RotateOp,
                      gptc::gpt::KVAppendOp, gptc::gpt::SplitHeadsOp,
                      gptc::gpt::LayerNormOp, gptc::gpt::RmsNormOp>(op);
  });
  EXPECT_EQ(gemms, 9u);
  EXPECT_EQ(attentions, 2u);
  EXPECT_EQ(left, 0u);
  expectSameInPieces();
}

TEST_P(SameMeaningTest, RaggedBatch) {
  compile(fuseAll);
  // Sequence 7: tokens 0 .. 2; sequence 2: tokens 0 .. 1; then one more each.
  const auto &p = kPrompt;
  auto got =
      logits("step", {ids({p[0], p[1], p[0], p[1], p[2]}), ids({0, 1, 0, 1, 2}),
                      ids({2, 2, 7, 7, 7}), ids({4, 1}), cache});
  ASSERT_EQ(got.size(), 2 * width);
  expectRow(llvm::ArrayRef(got).take_front(width), 2);
  expectRow(llvm::ArrayRef(got).take_back(width), 1);
  got = logits("step", {ids({p[3], p[2]}), ids({3, 2}), ids({7, 2}),
                        ids({0, 1}), cache});
  ASSERT_EQ(got.size(), 2 * width);
  expectRow(llvm::ArrayRef(got).take_front(width), 3);
  expectRow(llvm::ArrayRef(got).take_back(width), 2);
}

TEST_P(SameMeaningTest, EachFusionLeftOut) {
  mlir::OwningOpRef<mlir::ModuleOp> graph = module->clone();
  for (llvm::StringRef name : gptc::fusionNames()) {
    SCOPED_TRACE("without " + name.str());
    module = graph->clone();
    compile([&](mlir::OpPassManager &pm) {
      gptc::FusionOptions options = withNorms();
      options.disabled.push_back(name.str());
      gptc::buildFusionPipeline(pm, options);
    });
    expectSameInPieces();
  }
}

INSTANTIATE_TEST_SUITE_P(Models, SameMeaningTest,
                         testing::Values("gpt2-hf", "llama-hf",
                                         "llama-hf-llama3-rope"),
                         [](const auto &info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });
