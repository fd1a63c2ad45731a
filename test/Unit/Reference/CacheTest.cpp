// The KV cache: append, truncation, cached attention, calls of kernels.
#include "Evaluate.h"

using namespace gptc::reference;

namespace {
class CacheTest : public EvaluateTest {
protected:
  /// Two layers, one head of size 1; keys 0, values given: cached attention of
  /// layer 1 averages what a token sees.
  std::vector<double> step(TensorRef cache, std::vector<double> values,
                           std::vector<int64_t> positions,
                           std::vector<int64_t> sequences) {
    int64_t T = values.size();
    return run(text, {cache, makeTensor({1, T, 1}, values),
                      makeInts({T}, positions), makeInts({T}, sequences)});
  }

  const std::string text = R"mlir(
    !cache = !gpt.kv_cache<2 x 1 x 1, page 64, f32>
    func.func @f(%c0: !cache, %v: tensor<1x?x1xf32>, %p: tensor<?xi32>, %s: tensor<?xi32>) -> tensor<?x1xf32> {
      %zero = arith.constant 0.0 : f32
      %i1 = arith.constant 1 : index
      %n = tensor.dim %v, %i1 : tensor<1x?x1xf32>
      %k = tensor.splat %zero[%n] : tensor<1x?x1xf32>
      %q = tensor.splat %zero[%n] : tensor<?x1xf32>
      %c1 = gpt.kv_append %c0, %k, %v at %p, %s layer 1 : !cache, tensor<1x?x1xf32>, tensor<?xi32>
      %o = gpt.flash_attention %q cache %c1 at %p, %s layer 1 causal scale 1.0 : tensor<?x1xf32>, !cache
      return %o : tensor<?x1xf32>
    })mlir";
  TensorRef cache = makeCache(2, 1, 1);
};
} // namespace

TEST_F(CacheTest, StepsContinueASequence) {
  expectNear(step(cache, {0, 1, 2}, {0, 1, 2}, {0, 0, 0}), {0, 0.5, 1});
  expectNear(step(cache, {3}, {3}, {0}), {1.5});
}

TEST_F(CacheTest, ARaggedBatchKeepsSequencesApart) {
  expectNear(step(cache, {0, 10, 2, 20}, {0, 0, 1, 1}, {0, 5, 0, 5}),
             {0, 10, 1, 15});
  expectNear(step(cache, {30, 4}, {2, 2}, {5, 0}), {20, 2});
}

TEST_F(CacheTest, AnEarlierPositionTruncates) {
  step(cache, {0, 1, 2, 3}, {0, 1, 2, 3}, {0, 0, 0, 0});
  expectNear(step(cache, {8}, {1}, {0}), {4});
  EXPECT_EQ(cache->cache->length(KVCache::Values, 1, 0), 2);
  expectContains(error(text, {cache, makeTensor({1, 1, 1}, {0}),
                              makeInts({1}, {3}), makeInts({1}, {0})}),
                 "expected position 0 to 2 for sequence 0 at row 0, got 3");
}

TEST_F(CacheTest, AWindowAndAlibiCountFromTheTokensPosition) {
  // Keys 0: a window of 2 averages two values; a slope of ln 2 halves the
  // weight of a key for each step back.
  auto with = [&](const std::string &causal, const std::string &alibi) {
    std::string changed = text;
    changed.replace(changed.find("causal scale 1.0"), 16,
                    "causal" + causal + " scale 1.0" + alibi);
    TensorRef fresh = makeCache(2, 1, 1);
    auto go = [&](std::vector<double> values, std::vector<int64_t> positions) {
      int64_t T = values.size();
      return run(changed, {fresh, makeTensor({1, T, 1}, values),
                           makeInts({T}, positions),
                           makeInts({T}, std::vector<int64_t>(T, 3))});
    };
    auto rows = go({1, 3, 11}, {0, 1, 2});
    auto last = go({19}, {3});
    rows.insert(rows.end(), last.begin(), last.end());
    return rows;
  };
  expectNear(with(" window 2", ""), {1, 2, 7, 15});
  expectNear(with(" window 2", " alibi [0.69314718055994531]"),
             {1, 7.0 / 3, 25.0 / 3, 49.0 / 3}, 1e-6);
  expectNear(with("", " alibi [0.69314718055994531]"),
             {1, 7.0 / 3, (1 + 6 + 44) / 7.0, (1 + 6 + 44 + 152) / 15.0}, 1e-6);
}

TEST_F(CacheTest, ReadGivesTheCurrentSequence) {
  std::string read = R"mlir(
    !cache = !gpt.kv_cache<1 x 2 x 1, page 64, f32>
    func.func @f(%c0: !cache, %k: tensor<2x?x1xf32>, %v: tensor<2x?x1xf32>, %p: tensor<?xi32>, %s: tensor<?xi32>) -> (tensor<2x?x1xf32>, tensor<2x?x1xf32>) {
      %c1 = gpt.kv_append %c0, %k, %v at %p, %s layer 0 : !cache, tensor<2x?x1xf32>, tensor<?xi32>
      %ks, %vs = gpt.kv_read %c1 layer 0 : !cache -> tensor<2x?x1xf32>
      return %ks, %vs : tensor<2x?x1xf32>, tensor<2x?x1xf32>
    })mlir";
  TensorRef two = makeCache(1, 2, 1);
  auto args = [&](int64_t position, int64_t sequence, double k, double v) {
    return std::vector<TensorRef>{two, makeTensor({2, 1, 1}, {k, k + 1}),
                                  makeTensor({2, 1, 1}, {v, v + 1}),
                                  makeInts({1}, {position}),
                                  makeInts({1}, {sequence})};
  };
  ASSERT_TRUE(mlir::succeeded(tryRun(read, args(0, 3, 1, 10)))) << messages;
  ASSERT_TRUE(mlir::succeeded(tryRun(read, args(0, 4, 5, 50)))) << messages;
  auto results = tryRun(read, args(1, 3, 7, 70));
  ASSERT_TRUE(mlir::succeeded(results)) << messages;
  expectNear((*results)[0]->data, {1, 7, 2, 8});
  expectNear((*results)[1]->data, {10, 70, 11, 71});

  expectContains(error(read, {two, makeTensor({2, 2, 1}, repeat(4, 0)),
                              makeTensor({2, 2, 1}, repeat(4, 0)),
                              makeInts({2}, {0, 0}), makeInts({2}, {0, 1})}),
                 "run a ragged batch sequence by sequence");
}

TEST_F(CacheTest, ACallChoosesTheLayerOfItsKernel) {
  std::string calls = R"mlir(
    !cache = !gpt.kv_cache<2 x 1 x 1, page 64, f32>
    gpt.kernel @attention(%q: tensor<?x1xf32>, %c: !cache, %p: tensor<?xi32>, %s: tensor<?xi32>) -> tensor<?x1xf32> {
      %o = gpt.flash_attention %q cache %c at %p, %s layer 0 causal scale 1.0 : tensor<?x1xf32>, !cache
      gpt.return %o : tensor<?x1xf32>
    }
    func.func @f(%q: tensor<?x1xf32>, %c: !cache, %p: tensor<?xi32>, %s: tensor<?xi32>) -> tensor<?x1xf32> {
      %o = gpt.call @attention(%q, %c, %p, %s) {layer = 1 : i64} : (tensor<?x1xf32>, !cache, tensor<?xi32>, tensor<?xi32>) -> tensor<?x1xf32>
      return %o : tensor<?x1xf32>
    })mlir";
  step(cache, {6, 8}, {0, 1}, {0, 0});
  expectNear(run(calls, {makeTensor({1, 1}, {0}), cache, makeInts({1}, {1}),
                         makeInts({1}, {0})}),
             {7});
}
