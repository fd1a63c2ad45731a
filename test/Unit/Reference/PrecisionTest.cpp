// Precision::Single is f32 arithmetic, bit for bit; Double is not touched by
// it. BF16, F16 and TF32 round the inputs of products of matrices.
#include "Evaluate.h"
#include <bit>
#include <cmath>

using namespace gptc::reference;
using namespace mlir;

namespace {
class PrecisionTest : public EvaluateTest {
protected:
  std::vector<double> plain(Precision precision, llvm::StringRef text,
                            llvm::ArrayRef<TensorRef> args,
                            Precision cached = Precision::Single) {
    module = parseSourceString<ModuleOp>(text, &context);
    EXPECT_TRUE(module) << messages;
    auto function = module->lookupSymbol<func::FuncOp>("f");
    auto results = Evaluator(nullptr, precision, cached).run(function, args);
    EXPECT_TRUE(succeeded(results)) << messages;
    return results->front()->data;
  }
  std::vector<double> single(llvm::StringRef text,
                             llvm::ArrayRef<TensorRef> args) {
    return plain(Precision::Single, text, args);
  }
};

/// Values of f32 whose sums and products need rounding.
std::vector<double> values(int64_t count, int seed) {
  std::vector<double> result;
  for (int64_t i = 0; i < count; ++i)
    result.push_back(static_cast<float>(std::sin(1.7 * i + seed) / 3));
  return result;
}

struct Linear {
  const char *text = R"(
    func.func @f(%x: tensor<2x37xf32>, %w: tensor<3x37xf32>, %b: tensor<3xf32>) -> tensor<2x3xf32> {
      %y = gpt.linear %x, %w bias %b : tensor<2x37xf32>, tensor<3x37xf32>, tensor<3xf32> -> tensor<2x3xf32>
      return %y : tensor<2x3xf32>
    })";
  std::vector<double> x = values(2 * 37, 1), w = values(3 * 37, 2),
                      b = values(3, 3);
  std::vector<TensorRef> args = {makeTensor({2, 37}, x), makeTensor({3, 37}, w),
                                 makeTensor({3}, b)};

  /// Its results in f32, where `input` rounds x and w: a bias is no input of a
  /// product.
  std::vector<float> sums(llvm::function_ref<float(double)> input) const {
    std::vector<float> result;
    for (int t = 0; t < 2; ++t)
      for (int n = 0; n < 3; ++n) {
        volatile float sum = 0, product;
        for (int k = 0; k < 37; ++k) {
          product = input(x[t * 37 + k]) * input(w[n * 37 + k]);
          sum = sum + product;
        }
        sum = sum + static_cast<float>(b[n]);
        result.push_back(float(sum));
      }
    return result;
  }
};
} // namespace

TEST_F(PrecisionTest, Linear) {
  Linear linear;
  std::vector<double> exact = run(linear.text, linear.args);
  std::vector<float> expected =
      linear.sums([](double x) { return static_cast<float>(x); });
  EXPECT_EQ(single(linear.text, linear.args),
            std::vector<double>(expected.begin(), expected.end()));
  EXPECT_FALSE(
      std::equal(exact.begin(), exact.end(), expected.begin(), expected.end()));
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

//===----------------------------------------------------------------------===//
// Inputs of reduced precision
//===----------------------------------------------------------------------===//

TEST(RoundedInputTest, TiesAndEdges) {
  auto bf16 = [](double x) { return roundedInput(Precision::BF16, x); };
  auto f16 = [](double x) { return roundedInput(Precision::F16, x); };
  auto tf32 = [](double x) { return roundedInput(Precision::TF32, x); };
  EXPECT_EQ(bf16(1 + 0x1p-8), 1);
  EXPECT_EQ(bf16(1 + 0x1p-8 + 0x1p-23), 1 + 0x1p-7);
  EXPECT_EQ(bf16(-1 - 0x3p-8), -1 - 0x1p-6);
  EXPECT_EQ(bf16(2 - 0x1p-20), 2);
  EXPECT_EQ(bf16(0x1p-133), 0x1p-133);
  EXPECT_EQ(bf16(0x1p-134), 0);
  EXPECT_EQ(f16(65519.99), 65504);
  EXPECT_EQ(f16(-65520), -INFINITY);
  EXPECT_EQ(f16(0x1p-25), 0);
  EXPECT_EQ(f16(0x3p-25), 0x1p-23);
  EXPECT_TRUE(std::signbit(f16(-0x1p-30)));
  EXPECT_EQ(tf32(1 + 0x1p-11), 1);
  EXPECT_EQ(tf32(1 + 0x1p-11 + 0x1p-23), 1 + 0x1p-10);
  EXPECT_EQ(tf32(1e38), tf32(tf32(1e38)));
  for (Precision p : {Precision::TF32, Precision::BF16, Precision::F16}) {
    EXPECT_EQ(roundedInput(p, INFINITY), INFINITY);
    EXPECT_TRUE(std::isnan(roundedInput(p, NAN)));
  }
  EXPECT_EQ(roundedInput(Precision::Single, 0.1), 0.1);
}

/// Against the compiler's own conversions, over all exponents of f32.
TEST(RoundedInputTest, AsTheCompilerConverts) {
  uint32_t word = 12345;
  for (int i = 0; i < 200000; ++i) {
    word = word * 1664525 + 1013904223;
    auto x = std::bit_cast<float>(word);
    if (!std::isfinite(x))
      continue;
    auto half = static_cast<_Float16>(x);
    ASSERT_EQ(roundedInput(Precision::F16, x), static_cast<double>(half)) << x;
    // The upper half of the bits, to nearest, ties to even.
    uint32_t upper = (word + 0x7fff + (word >> 16 & 1)) & 0xffff0000;
    ASSERT_EQ(roundedInput(Precision::BF16, x), std::bit_cast<float>(upper))
        << x;
  }
}

TEST_F(PrecisionTest, LinearRoundsItsInputs) {
  Linear linear;
  std::vector<float> expected = linear.sums(
      [](double x) { return static_cast<float>(static_cast<_Float16>(x)); });
  EXPECT_EQ(plain(Precision::F16, linear.text, linear.args),
            std::vector<double>(expected.begin(), expected.end()));
}

/// q, k, v and the probabilities: one of them at a time holds a number that
/// bf16 cannot.
TEST_F(PrecisionTest, AttentionRoundsItsInputs) {
  const char *text = R"(
    func.func @f(%q: tensor<1x1x2xf32>, %k: tensor<1x2x2xf32>, %v: tensor<1x2x2xf32>) -> tensor<1x1x2xf32> {
      %o = gpt.flash_attention %q, %k, %v scale 1.0 groups 1 : tensor<1x1x2xf32>, tensor<1x2x2xf32>
      return %o : tensor<1x1x2xf32>
    })";
  const double fine = 1 + 0x1p-10; // 1 in bf16
  auto attend = [&](std::vector<double> q, std::vector<double> k,
                    std::vector<double> v) {
    return plain(Precision::BF16, text,
                 {makeTensor({1, 1, 2}, q), makeTensor({1, 2, 2}, k),
                  makeTensor({1, 2, 2}, v)});
  };
  auto plainly = attend({1, 0}, {1, 0, 0, 0}, {1, 2, 3, 4});
  EXPECT_EQ(attend({fine, 0}, {1, 0, 0, 0}, {1, 2, 3, 4}), plainly);
  EXPECT_EQ(attend({1, 0}, {fine, 0, 0, 0}, {1, 2, 3, 4}), plainly);
  EXPECT_EQ(attend({1, 0}, {1, 0, 0, 0}, {fine, 2, 3, 4}), plainly);
  // e / (1 + e) and 1 / (1 + e) in bf16.
  EXPECT_EQ(attend({1, 0}, {1, 0, 0, 0}, {1, 0, 0, 1}),
            (std::vector<double>{0.73046875, 0.26953125}));
}

//===----------------------------------------------------------------------===//
// Keys and values as a cache holds them
//===----------------------------------------------------------------------===//

/// In attention and in the matmuls of a graph: keys and values, nothing else,
/// and not in double.
TEST_F(PrecisionTest, KeysAndValuesAreRoundedAsCached) {
  const char *fused = R"(
    func.func @f(%q: tensor<1x1x2xf32>, %k: tensor<1x2x2xf32>, %v: tensor<1x2x2xf32>) -> tensor<1x1x2xf32> {
      %o = gpt.flash_attention %q, %k, %v scale 1.0 groups 1 : tensor<1x1x2xf32>, tensor<1x2x2xf32>
      return %o : tensor<1x1x2xf32>
    })";
  const char *written = R"(
    func.func @f(%q: tensor<1x1x2xf32>, %k: tensor<1x2x2xf32>, %v: tensor<1x2x2xf32>) -> tensor<1x1x2xf32> {
      %s = gpt.matmul %q, %k transpose_b groups 1 : tensor<1x1x2xf32>, tensor<1x2x2xf32> -> tensor<1x1x2xf32>
      %p = gpt.softmax %s : tensor<1x1x2xf32>
      %o = gpt.matmul %p, %v groups 1 : tensor<1x1x2xf32>, tensor<1x2x2xf32> -> tensor<1x1x2xf32>
      return %o : tensor<1x1x2xf32>
    })";
  const double fine = 1 + 0x1p-12; // 1 in bf16 and f16
  using Numbers = std::vector<double>;
  for (const char *text : {fused, written})
    for (auto [precision, cached] :
         {std::pair(Precision::Single, Precision::BF16),
          {Precision::Single, Precision::F16},
          {Precision::TF32, Precision::BF16},
          {Precision::Double, Precision::BF16}}) {
      auto attend = [&, precision = precision,
                     cached = cached](Numbers q, Numbers k, Numbers v) {
        return plain(precision, text,
                     {makeTensor({1, 1, 2}, q), makeTensor({1, 2, 2}, k),
                      makeTensor({1, 2, 2}, v)},
                     cached);
      };
      const bool rounds = precision != Precision::Double;
      Numbers usual = attend({1, 0}, {1, 0, 0, 0}, {1, 2, 3, 4});
      EXPECT_EQ(attend({1, 0}, {fine, 0, 0, 0}, {1, 2, 3, 4}) == usual, rounds);
      EXPECT_EQ(attend({1, 0}, {1, 0, 0, 0}, {fine, 2, 3, 4}) == usual, rounds);
      if (precision == Precision::Single) {
        EXPECT_NE(attend({fine, 0}, {1, 0, 0, 0}, {1, 2, 3, 4}), usual);
      }
    }
}

TEST(RoundingErrorTest, HalfOfTheLastPlace) {
  EXPECT_EQ(roundingError(Precision::BF16, 1), 0x1p-8);
  EXPECT_EQ(roundingError(Precision::BF16, 1.99), 0x1p-8);
  EXPECT_EQ(roundingError(Precision::TF32, 2), 0x1p-10);
  EXPECT_EQ(roundingError(Precision::F16, 0), 0x1p-25);
  EXPECT_EQ(roundingError(Precision::F16, 1e30), 16);
  EXPECT_EQ(roundingError(Precision::Single, 1), 0);
  // A tie is off by exactly that.
  EXPECT_EQ(1 + 0x1p-8 - roundedInput(Precision::BF16, 1 + 0x1p-8),
            roundingError(Precision::BF16, 1));
}
