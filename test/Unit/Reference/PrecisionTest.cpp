// Precision::Single is f32 arithmetic, bit for bit; Double is not touched by
// it.
#include "Evaluate.h"
#include <cmath>

using namespace gptc::reference;
using namespace mlir;

namespace {
class PrecisionTest : public EvaluateTest {
protected:
  std::vector<double> single(llvm::StringRef text,
                             llvm::ArrayRef<TensorRef> args) {
    module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << messages;
    auto function = module->lookupSymbol<func::FuncOp>("f");
    auto results = Evaluator(nullptr, Precision::Single).run(function, args);
    EXPECT_TRUE(succeeded(results)) << messages;
    return results->front()->data;
  }
};

/// Values of f32 whose sums and products need rounding.
std::vector<double> values(int64_t count, int seed) {
  std::vector<double> result;
  for (int64_t i = 0; i < count; ++i)
    result.push_back(static_cast<float>(std::sin(1.7 * i + seed) / 3));
  return result;
}
} // namespace

TEST_F(PrecisionTest, Linear) {
  const char *text = R"(
    func.func @f(%x: tensor<2x37xf32>, %w: tensor<3x37xf32>, %b: tensor<3xf32>) -> tensor<2x3xf32> {
      %y = gpt.linear %x, %w bias %b : tensor<2x37xf32>, tensor<3x37xf32>, tensor<3xf32> -> tensor<2x3xf32>
      return %y : tensor<2x3xf32>
    })";
  auto x = values(2 * 37, 1), w = values(3 * 37, 2), b = values(3, 3);
  std::vector<TensorRef> args = {makeTensor({2, 37}, x), makeTensor({3, 37}, w),
                                 makeTensor({3}, b)};
  std::vector<double> plain = single(text, args), exact = run(text, args);
  ASSERT_EQ(plain.size(), 6u);
  bool rounded = false;
  for (int t = 0; t < 2; ++t)
    for (int n = 0; n < 3; ++n) {
      volatile float sum = 0, product;
      for (int k = 0; k < 37; ++k) {
        product = static_cast<float>(x[t * 37 + k]) *
                  static_cast<float>(w[n * 37 + k]);
        sum = sum + product;
      }
      sum = sum + static_cast<float>(b[n]);
      EXPECT_EQ(plain[t * 3 + n], sum);
      rounded |= exact[t * 3 + n] != sum;
    }
  EXPECT_TRUE(rounded);
}

TEST_F(PrecisionTest, FunctionsAreRoundedOnce) {
  const char *text = R"(
    func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
      %y = math.exp %x : tensor<8xf32>
      %z = arith.divf %x, %y : tensor<8xf32>
      return %z : tensor<8xf32>
    })";
  auto x = values(8, 4);
  std::vector<double> plain = single(text, {makeTensor({8}, x)});
  for (int i = 0; i < 8; ++i) {
    float e = static_cast<float>(std::exp(x[i]));
    EXPECT_EQ(plain[i], static_cast<float>(x[i]) / e);
  }
}

TEST_F(PrecisionTest, IntegersAreExact) {
  const char *text = R"(
    func.func @f(%x: tensor<1xi32>) -> tensor<1xi32> {
      %y = arith.addi %x, %x : tensor<1xi32>
      return %y : tensor<1xi32>
    })";
  module = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(module) << messages;
  auto results = Evaluator(nullptr, Precision::Single)
                     .run(module->lookupSymbol<func::FuncOp>("f"),
                          {makeInts({1}, {16777217})});
  ASSERT_TRUE(succeeded(results)) << messages;
  EXPECT_EQ(results->front()->ints[0], 33554434);
}
