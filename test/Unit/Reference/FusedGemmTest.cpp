// gpt.fused_gemm: sections, lanes, residual, rope and append.
#include "Evaluate.h"

using namespace gptc::reference;

namespace {
using FusedGemmTest = EvaluateTest;
} // namespace

TEST_F(FusedGemmTest, BiasActivationAndResidual) {
  // silu(x w + b) + r with x w + b = ln 3: silu = ln 3 * 3 / 4.
  auto y =
      run(R"mlir(
    func.func @f(%x: tensor<?x2xf32>, %w: tensor<1x2xf32>, %b: tensor<1xf32>, %r: tensor<?x1xf32>) -> tensor<?x1xf32> {
      %y = gpt.fused_gemm %x : tensor<?x2xf32> residual %r
        section %w : tensor<1x2xf32> bias %b epilogue (%acc, %res) {
          %s = gpt.silu %acc : f32
          %z = arith.addf %s, %res : f32
          gpt.yield %z : f32
        } -> tensor<?x1xf32>
      return %y : tensor<?x1xf32>
    })mlir",
          {makeTensor({1, 2}, {1, 2}), makeTensor({1, 2}, {3, -1}),
           makeTensor({1}, {std::log(3.0) - 1}), makeTensor({1, 1}, {10})});
  expectNear(y, {10 + 0.75 * std::log(3.0)});
}

TEST_F(FusedGemmTest, Lanes) {
  // gate * up with a constant in the region, weights in both orientations.
  auto y = run(R"mlir(
    func.func @f(%x: tensor<?x2xf32>, %g: tensor<2x2xf32>, %u: tensor<2x2xf32>) -> tensor<?x2xf32> {
      %y = gpt.fused_gemm %x : tensor<?x2xf32>
        lanes (%g : tensor<2x2xf32>, %u : tensor<2x2xf32> in_out) epilogue (%a, %b) {
          %two = arith.constant 2.0 : f32
          %m = arith.mulf %a, %b : f32
          %z = arith.mulf %m, %two : f32
          gpt.yield %z : f32
        } -> tensor<?x2xf32>
      return %y : tensor<?x2xf32>
    })mlir",
               {makeTensor({1, 2}, {1, 10}), makeTensor({2, 2}, {1, 2, 3, 4}),
                makeTensor({2, 2}, {1, 2, 3, 4})});
  // a = [21, 43], b = [31, 42].
  expectNear(y, {2 * 21 * 31, 2 * 43 * 42});
}

TEST_F(FusedGemmTest, QKVWithRopeAndAppend) {
  // One head of size 2; q, k, v are x times 1, 2, 3. Position 1, one pair: the
  // angle is 1 rad.
  std::string text = R"mlir(
    !cache = !gpt.kv_cache<1 x 1 x 2, page 64, f32>
    func.func @f(%x: tensor<?x2xf32>, %wq: tensor<2x2xf32>, %wk: tensor<2x2xf32>, %wv: tensor<2x2xf32>, %p: tensor<?xi32>, %s: tensor<?xi32>, %c: !cache) -> tensor<?x2xf32> {
      %cs = gpt.rope_table %p <base 2.0, pairs half, dim 2> : tensor<?xi32> -> tensor<?x2x2xf32>
      %q, %c1 = gpt.fused_gemm %x : tensor<?x2xf32> at %p, %s rope %cs : tensor<?x2x2xf32> cache %c : !cache layer 0 sections {
        %wq : tensor<2x2xf32> rope half epilogue (%acc, %partner, %cos, %sin) {
          %0 = arith.mulf %acc, %cos : f32
          %1 = math.fma %partner, %sin, %0 : f32
          gpt.yield %1 : f32
        } -> tensor<?x2xf32>,
        %wk : tensor<2x2xf32> rope half append keys epilogue (%acc, %partner, %cos, %sin) {
          %0 = arith.mulf %acc, %cos : f32
          %1 = math.fma %partner, %sin, %0 : f32
          gpt.yield %1 : f32
        },
        %wv : tensor<2x2xf32> append values
      }
      return %q : tensor<?x2xf32>
    })mlir";
  TensorRef cache = makeCache(1, 1, 2);
  auto weight = [](double v) { return makeTensor({2, 2}, {v, 0, 0, v}); };
  auto y = run(text, {makeTensor({2, 2}, {1, 0, 0, 1}), weight(1), weight(2),
                      weight(3), makeInts({2}, {0, 1}), makeInts({2}, {7, 7}),
                      cache});
  const double c = std::cos(1.0), s = std::sin(1.0);
  expectNear(y, {1, 0, -s, c}, 1e-15);
  expectNear(cache->cache->rows(KVCache::Keys, 0, 7), {2, 0, -2 * s, 2 * c},
             1e-15);
  expectNear(cache->cache->rows(KVCache::Values, 0, 7), {3, 0, 0, 3}, 0);
}

// Several values of one accumulator, and a row that serves every token.
TEST_F(FusedGemmTest, ValuesAndRows) {
  mlir::FailureOr<Results> results = tryRun(
      R"mlir(
    func.func @f(%x: tensor<?x2xf32>, %w: tensor<2x2xf32>, %g: tensor<2xf32>) -> (tensor<?x2xf32>, tensor<?x2xf32>) {
      %a, %b = gpt.fused_gemm %x : tensor<?x2xf32> residual row %g, %x section %w : tensor<2x2xf32> epilogue (%acc, %r, %s) {
        %m = arith.mulf %acc, %r : f32
        %y = arith.addf %m, %s : f32
        gpt.yield %acc, %y : f32, f32
      } -> (tensor<?x2xf32>, tensor<?x2xf32>)
      return %a, %b : tensor<?x2xf32>, tensor<?x2xf32>
    })mlir",
      {makeTensor({2, 2}, {1, 2, 3, 4}), makeTensor({2, 2}, {2, 0, 0, 5}),
       makeTensor({2}, {10, 100})});
  ASSERT_TRUE(succeeded(results));
  expectNear((*results)[0]->data, {2, 10, 6, 20}, 0);
  expectNear((*results)[1]->data, {21, 1002, 63, 2004}, 0);
}

// The norm comes first, and only the product sees it: the residual is x.
TEST_F(FusedGemmTest, NormPrologues) {
  mlir::FailureOr<Results> results = tryRun(
      R"mlir(
    func.func @f(%x: tensor<?x2xf32>, %w: tensor<2x2xf32>, %g: tensor<2xf32>, %b: tensor<2xf32>) -> (tensor<?x2xf32>, tensor<?x2xf32>) {
      %r = gpt.fused_gemm norm(rms %g eps 0.5) %x : tensor<?x2xf32> residual %x section %w : tensor<2x2xf32> epilogue (%acc, %s) {
        %y = arith.addf %acc, %s : f32
        gpt.yield %y : f32
      } -> tensor<?x2xf32>
      %l = gpt.fused_gemm norm(layer %g, %b eps 0.5) %x : tensor<?x2xf32> section %w : tensor<2x2xf32> -> tensor<?x2xf32>
      return %r, %l : tensor<?x2xf32>, tensor<?x2xf32>
    })mlir",
      {makeTensor({1, 2}, {1, 2}), makeTensor({2, 2}, {1, 0, 0, 1}),
       makeTensor({2}, {10, 100}), makeTensor({2}, {5, 7})});
  ASSERT_TRUE(succeeded(results));
  // mean(x^2) + eps = 3; mean 1.5, variance 0.25, with eps 0.75.
  const double rms = 1 / std::sqrt(3.0), layer = 0.5 / std::sqrt(0.75);
  expectNear((*results)[0]->data, {10 * rms + 1, 200 * rms + 2}, 1e-13);
  expectNear((*results)[1]->data, {5 - 10 * layer, 7 + 100 * layer}, 1e-13);
}

TEST_F(FusedGemmTest, ArgmaxOfBlocks) {
  // x w is column j times x, so the largest is the last of a block, or the
  // first where x is below 0; 20 columns are blocks of 16 and 4.
  std::string text = R"mlir(
    func.func @f(%x: tensor<?x1xf32>, %w: tensor<20x1xf32>) -> (tensor<?xi32>, tensor<?x2xf32>, tensor<?x2xi32>) {
      %v, %c = gpt.fused_gemm %x : tensor<?x1xf32> argmax 16 section %w : tensor<20x1xf32> -> (tensor<?x2xf32>, tensor<?x2xi32>)
      %t = gpt.merge_argmax %v, %c : tensor<?x2xf32>, tensor<?x2xi32> -> tensor<?xi32>
      return %t, %v, %c : tensor<?xi32>, tensor<?x2xf32>, tensor<?x2xi32>
    })mlir";
  std::vector<double> w(20);
  for (int i = 0; i < 20; ++i)
    w[i] = i;
  auto results = tryRun(
      text, {makeTensor({4, 1}, {2, -1, 0, NAN}), makeTensor({20, 1}, w)});
  ASSERT_TRUE(mlir::succeeded(results)) << messages;
  using Ints = std::vector<int64_t>;
  EXPECT_EQ((*results)[0]->ints, Ints({19, 0, 0, 0}));
  EXPECT_EQ((*results)[2]->ints, Ints({15, 19, 0, 16, 0, 16, 0, 16}));
  std::vector<double> values = (*results)[1]->data;
  EXPECT_TRUE(std::isnan(values[6]) && std::isnan(values[7]));
  values.resize(6);
  expectNear(values, {30, 38, 0, -16, 0, 0}, 0);
  // What they were chosen from goes with them.
  for (auto [i, block] : {std::pair(0, 20), {1, 16}, {2, 16}}) {
    EXPECT_EQ((*results)[i]->among->elements(), 80);
    EXPECT_EQ((*results)[i]->block, block);
  }
}
