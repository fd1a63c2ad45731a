//===- RopeAttrTest.cpp - rotary frequencies ------------------------------===//
//
// The llama3 numbers are those of the published Llama 3.1 8B (head size 128)
// and Llama 3.2 1B (head size 64) parameters, to seven digits.
//
//===----------------------------------------------------------------------===//
#include "gptc/Dialect/Gpt/Gpt.h"
#include <cmath>
#include <gtest/gtest.h>

using namespace gptc::gpt;

namespace {
struct RopeAttrTest : testing::Test {
  RopeAttrTest() { context.loadDialect<GptDialect>(); }
  RopeAttr rope(double base, int64_t dim, mlir::Attribute scaling = {}) {
    return RopeAttr::get(&context, base, RopePairs::Half, dim, scaling);
  }
  RopeScalingAttr llama3(double factor) {
    return RopeScalingAttr::get(&context, factor, 1.0, 4.0, 8192);
  }
  mlir::MLIRContext context;
};

void expectClose(double got, double expected) {
  EXPECT_LE(std::abs(got - expected), 5e-7 * expected);
}

TEST_F(RopeAttrTest, PlainFrequenciesAreAGeometricSeries) {
  llvm::SmallVector<double> f = rope(10000.0, 8).inverseFrequencies();
  ASSERT_EQ(f.size(), 4u);
  EXPECT_EQ(f[0], 1.0);
  EXPECT_DOUBLE_EQ(f[1], 0.1);
  EXPECT_DOUBLE_EQ(f[2], 0.01);
  EXPECT_DOUBLE_EQ(f[3], 0.001);
}

TEST_F(RopeAttrTest, Llama3Head128) {
  llvm::SmallVector<double> plain = rope(5e5, 128).inverseFrequencies();
  llvm::SmallVector<double> f = rope(5e5, 128, llama3(8)).inverseFrequencies();
  ASSERT_EQ(f.size(), 64u);
  for (unsigned i = 0; i <= 28; ++i)
    EXPECT_EQ(f[i], plain[i]) << i;
  for (unsigned i = 29; i <= 34; ++i) {
    EXPECT_LT(f[i], plain[i]) << i;
    EXPECT_GT(f[i], plain[i] / 8) << i;
  }
  for (unsigned i = 35; i < 64; ++i)
    EXPECT_EQ(f[i], plain[i] / 8) << i;
  expectClose(f[29], 2.166571e-3);
  expectClose(f[31], 8.567514e-4);
  expectClose(f[34], 1.785078e-4);
  expectClose(f[63], 3.068926e-7);
}

TEST_F(RopeAttrTest, Llama3Head64) {
  llvm::SmallVector<double> plain = rope(5e5, 64).inverseFrequencies();
  llvm::SmallVector<double> f = rope(5e5, 64, llama3(32)).inverseFrequencies();
  ASSERT_EQ(f.size(), 32u);
  for (unsigned i = 0; i <= 14; ++i)
    EXPECT_EQ(f[i], plain[i]) << i;
  expectClose(f[15], 1.290548e-3);
  expectClose(f[16], 4.295568e-4);
  expectClose(f[17], 9.708288e-5);
  expectClose(f[31], 9.418307e-8);
}

TEST_F(RopeAttrTest, FactorsDivide) {
  auto factors = [&](llvm::ArrayRef<ExactDouble> list) {
    return rope(1e4, 8, RopeFactorsAttr::get(&context, list))
        .inverseFrequencies();
  };
  llvm::SmallVector<double> plain = rope(1e4, 8).inverseFrequencies();
  for (auto [one, other] : llvm::zip_equal(factors({4.0}), plain))
    EXPECT_EQ(one, other / 4);
  llvm::SmallVector<double> f = factors({1.0, 1.0, 2.0, 8.0});
  EXPECT_DOUBLE_EQ(f[1], 0.1);
  EXPECT_DOUBLE_EQ(f[2], 0.005);
  EXPECT_DOUBLE_EQ(f[3], 0.001 / 8);
  EXPECT_EQ(RopeFactorsAttr::get(&context, {2.0}),
            RopeFactorsAttr::get(&context, {2.0}));
  EXPECT_NE(RopeFactorsAttr::get(&context, {2.0}),
            RopeFactorsAttr::get(&context, {2.0, 2.0}));
}

TEST_F(RopeAttrTest, NumbersAreKeysByTheirBits) {
  EXPECT_EQ(rope(1e5, 64), rope(1e5, 64));
  EXPECT_NE(rope(1e5, 64), rope(std::nextafter(1e5, 2e5), 64));
}
} // namespace
