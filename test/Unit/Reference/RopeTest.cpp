// Rotary embedding: pairing, tables, Llama 3 scaling.
#include "Evaluate.h"

using namespace gptc::reference;

namespace {
class RopeTest : public EvaluateTest {
protected:
  /// One head of size 4 at `position`, by gpt.rope; then the same by
  /// gpt.rope_table and gpt.rotate, which must agree.
  std::vector<double> rope(const std::string &pairs, int64_t position,
                           std::vector<double> x) {
    std::string attribute = "<base 1.0e4, pairs " + pairs + ", dim 4>";
    std::vector<TensorRef> args = {makeTensor({1, 1, 4}, x),
                                   makeInts({1}, {position})};
    auto direct = run(header + "%y = gpt.rope %x, %p " + attribute +
                          " : tensor<1x?x4xf32>, tensor<?xi32>\n" + footer,
                      args);
    auto byTable =
        run(header + "%t = gpt.rope_table %p " + attribute +
                " : tensor<?xi32> -> tensor<?x2x4xf32>\n"
                "%y = gpt.rotate %x, %t " +
                pairs + " : tensor<1x?x4xf32>, tensor<?x2x4xf32>\n" + footer,
            args);
    expectNear(byTable, direct, 0);
    return direct;
  }

  /// sin of every frequency at position 1 (half pairing), so that small
  /// frequencies show as themselves.
  std::vector<double> frequencies(const std::string &attribute, int64_t dim) {
    std::string type = "tensor<?x2x" + std::to_string(dim) + "xf32>";
    auto table =
        run("func.func @f(%p: tensor<?xi32>) -> " + type +
                " {\n%t = gpt.rope_table %p " + attribute +
                " : tensor<?xi32> -> " + type + "\nreturn %t : " + type + "\n}",
            {makeInts({1}, {1})});
    if (table.empty())
      return {};
    std::vector<double> result;
    for (int64_t i = 0; i < dim / 2; ++i)
      result.push_back(std::atan2(table[dim + dim / 2 + i], table[i]));
    return result;
  }

  const std::string header =
      "func.func @f(%x: tensor<1x?x4xf32>, %p: tensor<?xi32>) -> "
      "tensor<1x?x4xf32> {\n";
  const std::string footer = "return %y : tensor<1x?x4xf32>\n}";
};
} // namespace

TEST_F(RopeTest, Pairing) {
  expectNear(rope("adjacent", 1, {1, 0, 0, 0}), {0.540302, 0.841471, 0, 0},
             1e-6);
  expectNear(rope("adjacent", 1, {0, 1, 0, 0}), {-0.841471, 0.540302, 0, 0},
             1e-6);
  expectNear(rope("half", 1, {1, 0, 0, 0}), {0.540302, 0, 0.841471, 0}, 1e-6);
  expectNear(rope("half", 1, {0, 1, 0, 0}), {0, 0.999950, 0, 0.0099998}, 1e-6);
}

// The first 4 of 8 channels rotate, as a head of 4 would; the others stay. The
// op, its table and the epilogue of a GEMM agree.
TEST_F(RopeTest, PartOfTheHead) {
  const std::vector<double> x = {1, 0, 0, 2, 5, 6, 7, INFINITY};
  const double c0 = std::cos(3.0), s0 = std::sin(3.0), c1 = std::cos(0.03),
               s1 = std::sin(0.03);
  const std::vector<double> half = {c0, -2 * s1, s0, 2 * c1, 5, 6, 7, INFINITY},
                            adjacent = {c0, s0, -2 * s1, 2 * c1,
                                        5,  6,  7,       INFINITY};
  for (const char *pairs : {"half", "adjacent"}) {
    std::string attr =
        std::string("<base 10000.0, pairs ") + pairs + ", dim 8, rotary 4>";
    std::string table = "  %t = gpt.rope_table %p " + attr +
                        " : tensor<?xi32> -> tensor<?x2x8xf32>\n";
    std::string function =
        "func.func @f(%x: tensor<1x?x8xf32>, %p: tensor<?xi32>) -> "
        "tensor<1x?x8xf32> {\n";
    std::string end = "  return %y : tensor<1x?x8xf32>\n}";
    auto near = [&](const std::vector<double> &y) {
      const std::vector<double> &expected =
          pairs == std::string("half") ? half : adjacent;
      ASSERT_EQ(y.size(), 8u);
      expectNear(llvm::ArrayRef(y).drop_back(),
                 llvm::ArrayRef(expected).drop_back(), 1e-12);
      EXPECT_EQ(y.back(), expected.back());
    };
    near(run(function + "  %y = gpt.rope %x, %p " + attr +
                 " : tensor<1x?x8xf32>, tensor<?xi32>\n" + end,
             {makeTensor({1, 1, 8}, x), makeInts({1}, {3})}));
    near(run(function + table + "  %y = gpt.rotate %x, %t " + pairs +
                 " rotary 4 : tensor<1x?x8xf32>, tensor<?x2x8xf32>\n" + end,
             {makeTensor({1, 1, 8}, x), makeInts({1}, {3})}));
    std::vector<double> bias = x;
    near(run("func.func @f(%x: tensor<?x1xf32>, %w: tensor<8x1xf32>, %b: "
             "tensor<8xf32>, %p: tensor<?xi32>) -> tensor<?x8xf32> {\n" +
                 table +
                 "  %y = gpt.fused_gemm %x : tensor<?x1xf32> rope %t : "
                 "tensor<?x2x8xf32> rotary 4 section %w : tensor<8x1xf32> bias "
                 "%b rope " +
                 pairs + R"mlir( epilogue (%acc, %partner, %cos, %sin) {
        %0 = arith.mulf %acc, %cos : f32
        %1 = math.fma %partner, %sin, %0 : f32
        gpt.yield %1 : f32
      } -> tensor<?x8xf32>
      return %y : tensor<?x8xf32>
    })mlir",
             {makeTensor({1, 1}, {0}),
              makeTensor({8, 1}, std::vector<double>(8, 0)),
              makeTensor({8}, bias), makeInts({1}, {3})}));
  }
}

TEST_F(RopeTest, PositionZeroIsTheIdentityAndNormsStay) {
  for (const char *pairs : {"half", "adjacent"}) {
    expectNear(rope(pairs, 0, {1, 2, 3, 4}), {1, 2, 3, 4}, 0);
    auto y = rope(pairs, 12345, {1, 2, 3, 4});
    double norm = 0;
    for (double value : y)
      norm += value * value;
    EXPECT_NEAR(norm, 30, 1e-12);
  }
}

TEST_F(RopeTest, OnlyTheDistanceCounts) {
  auto q = rope("half", 7, {1, 0, 0, 0}), k = rope("half", 4, {1, 0, 0, 0});
  ASSERT_EQ(q.size() + k.size(), 8u);
  double product = 0;
  for (int i = 0; i < 4; ++i)
    product += q[i] * k[i];
  EXPECT_NEAR(product, -0.989992, 1e-6); // cos 3
}

TEST_F(RopeTest, Factors) {
  const std::string rope = "<base 1.0e4, pairs half, dim 8, scaling "
                           "#gpt.rope_factors";
  auto plain = frequencies("<base 1.0e4, pairs half, dim 8>", 8);
  auto linear = frequencies(rope + "<4.0>>", 8);
  auto each = frequencies(rope + "<1.0, 1.5, 4.0, 8.0>>", 8);
  const double factors[] = {1.0, 1.5, 4.0, 8.0};
  ASSERT_EQ(linear.size(), 4u);
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(linear[i], plain[i] / 4, 1e-15);
    EXPECT_NEAR(each[i], plain[i] / factors[i], 1e-15);
  }
}

TEST_F(RopeTest, Llama3Scaling) {
  auto plain = frequencies("<base 5.0e5, pairs half, dim 128>", 128);
  auto scaled = frequencies(
      "<base 5.0e5, pairs half, dim 128, scaling #gpt.llama3<factor "
      "8.0, low 1.0, high 4.0, original 8192>>",
      128);
  ASSERT_EQ(plain.size(), 64u);
  ASSERT_EQ(scaled.size(), 64u);
  for (int i = 0; i <= 28; ++i)
    EXPECT_NEAR(scaled[i], plain[i], 1e-15);
  for (int i = 35; i < 64; ++i)
    EXPECT_NEAR(scaled[i], plain[i] / 8, 1e-15);
  EXPECT_NEAR(scaled[29], 2.166571e-3, 1e-9);
  EXPECT_NEAR(scaled[31], 8.567514e-4, 1e-10);
  EXPECT_NEAR(scaled[34], 1.785078e-4, 1e-10);
  EXPECT_NEAR(scaled[63], 3.068926e-7, 1e-13);

  auto small =
      frequencies("<base 5.0e5, pairs half, dim 64, scaling #gpt.llama3<factor "
                  "32.0, low 1.0, high 4.0, original 8192>>",
                  64);
  ASSERT_EQ(small.size(), 32u);
  EXPECT_NEAR(small[15], 1.290548e-3, 1e-9);
  EXPECT_NEAR(small[16], 4.295568e-4, 1e-10);
  EXPECT_NEAR(small[17], 9.708288e-5, 1e-11);
  EXPECT_NEAR(small[31], 9.418307e-8, 1e-14);
}
