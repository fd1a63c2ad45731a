// What gptc-check and --verify-fusions accept and refuse.
#include "gptc/Verify/Compare.h"
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using namespace gptc::verify;

static constexpr double inf = std::numeric_limits<double>::infinity();
static constexpr double ulp = std::numeric_limits<float>::epsilon();

static bool accepts(std::vector<double> exact, std::vector<double> actual) {
  return compare(exact, exact, actual).ok();
}

TEST(CompareTest, BoundIsTwiceThePlainErrorAndAFloor) {
  Difference found = compare({3, -4}, {3.5, -4}, {3, -4});
  EXPECT_DOUBLE_EQ(found.bound, 2 * 0.5 + ulpFloor * ulp * 4);
  EXPECT_DOUBLE_EQ(found.rms, std::sqrt(12.5));
  EXPECT_EQ(found.error, 0);
  EXPECT_TRUE(found.ok());
}

TEST(CompareTest, FloorIsOfTheLargestElement) {
  EXPECT_TRUE(accepts({0, 1}, {7 * ulp, 1}));
  EXPECT_FALSE(accepts({0, 1}, {9 * ulp, 1}));
  EXPECT_TRUE(accepts({0, 0}, {0, 0}));
  EXPECT_FALSE(accepts({0, 0}, {0, 1e-30}));
}

TEST(CompareTest, NaNFailsWhereverItIs) {
  EXPECT_FALSE(accepts({1, 2}, {1, NAN}));
  EXPECT_FALSE(accepts({1, NAN}, {1, 2}));
  EXPECT_FALSE(accepts({NAN}, {NAN}));
  // It is not forgotten for a later element.
  Difference found = compare({1, 1}, {1, 1}, {NAN, 5});
  EXPECT_FALSE(found.ok());
  EXPECT_EQ(found.index, 0);
  EXPECT_TRUE(found.worseThan(compare({1}, {1}, {2})));
}

TEST(CompareTest, InfinityIsRightOnlyWhereItBelongs) {
  EXPECT_TRUE(accepts({-inf, 1}, {-inf, 1}));
  EXPECT_FALSE(accepts({-inf, 1}, {inf, 1}));
  EXPECT_FALSE(accepts({1, 1}, {inf, 1}));
  EXPECT_FALSE(accepts({inf, 1}, {1, 1}));
  // 1e39 is infinite in f32.
  EXPECT_TRUE(accepts({1e39, 1}, {inf, 1}));
  EXPECT_FALSE(accepts({1e39, 1}, {3e38, 1}));
  // An overflow of the plain computation is no licence.
  EXPECT_FALSE(compare({1, 1}, {inf, 1}, {2, 1}).ok());
  EXPECT_FALSE(compare({1, 1}, {NAN, 1}, {2, 1}).ok());
}

TEST(CompareTest, WorseIsNearerToTheBound) {
  Difference small = compare({1}, {1}, {1 + 2 * ulp});
  Difference wide = compare({1000}, {1001}, {1001});
  EXPECT_TRUE(small.ok() && wide.ok());
  EXPECT_TRUE(wide.worseThan(small));
  EXPECT_FALSE(small.worseThan(wide));
  EXPECT_TRUE(compare({1}, {1}, {1.1}).worseThan(wide));
}

TEST(CompareTest, SixteenBitsAreRoundedOnce) {
  using gptc::reference::Precision;
  // Half of the last place of 1.5: 8 significant bits, 11.
  auto accepts = [](double actual, Precision stored) {
    return compare({1.5, 0}, {1.5, 0}, {actual, 0}, stored).ok();
  };
  const double rest = ulpFloor * ulp * 1.5;
  EXPECT_TRUE(accepts(1.5 + 0x1p-8 + rest, Precision::BF16));
  EXPECT_FALSE(accepts(1.5 + 0x1.1p-8 + rest, Precision::BF16));
  EXPECT_TRUE(accepts(1.5 - 0x1p-11 - rest, Precision::F16));
  EXPECT_FALSE(accepts(1.5 - 0x1.1p-11 - rest, Precision::F16));
  EXPECT_FALSE(accepts(1.5 + 0x1p-11, Precision::Single));
  // Denormals of f16 are 2^-24 apart.
  EXPECT_TRUE(compare({0x1p-25}, {0x1p-25}, {0}, Precision::F16).ok());
  EXPECT_FALSE(compare({0x1.2p-25}, {0x1.2p-25}, {0}, Precision::F16).ok());
  // What the element cannot hold is infinite, and nothing else is.
  EXPECT_TRUE(compare({1e5, 1}, {1e5, 1}, {inf, 1}, Precision::F16).ok());
  EXPECT_FALSE(compare({6e4, 1}, {6e4, 1}, {inf, 1}, Precision::F16).ok());
  EXPECT_FALSE(compare({1e5, 1}, {1e5, 1}, {65504, 1}, Precision::F16).ok());
  EXPECT_FALSE(compare({1e5, 1}, {1e5, 1}, {inf, 1}, Precision::BF16).ok());
  EXPECT_FALSE(compare({1, 1}, {1, 1}, {1, NAN}, Precision::BF16).ok());
}

static gptc::reference::Tensor chosenAmong(std::vector<double> numbers,
                                           int64_t block,
                                           std::vector<int64_t> columns) {
  gptc::reference::Tensor result;
  result.kind = gptc::reference::Tensor::Kind::Int;
  result.shape = {1, static_cast<int64_t>(columns.size())};
  result.ints = std::move(columns);
  int64_t count = numbers.size();
  result.among = gptc::reference::makeTensor({1, count}, std::move(numbers));
  result.block = block;
  return result;
}

TEST(CompareTest, AColumnIsAsGoodAsItsNumber) {
  // Of columns 0 to 2 and 3 to 4. In f32 the first is 1 ulp too large.
  auto exact = chosenAmong({1, 1 + 3 * ulp, -2, 4, 0.5}, 3, {1, 3});
  auto plain = chosenAmong({1 + ulp, 1, -2, 4, 0.5}, 3, {0, 3});
  auto compared = [&](std::vector<double> actual) {
    return compare(exact, plain, actual);
  };
  EXPECT_EQ(compared({1, 3}).error, 0);
  // The bound is that of the numbers, as if they were the result.
  Difference tie = compared({0, 3});
  EXPECT_TRUE(tie.ok());
  EXPECT_DOUBLE_EQ(tie.error, 3 * ulp);
  EXPECT_DOUBLE_EQ(tie.bound, 2 * 3 * ulp + ulpFloor * ulp * 4);
  EXPECT_EQ(tie.index, 0);
  // A wrong one, near as it is; one of another block; none.
  for (double wrong : {2.0, 3.0, 4.0, -1.0, 5.0, 1e9, double(NAN)})
    EXPECT_FALSE(compared({wrong, 3}).ok()) << wrong;
  EXPECT_FALSE(compared({1, 4}).ok());
  EXPECT_DOUBLE_EQ(compared({1, 4}).error, 3.5);
}

TEST(CompareTest, AColumnOfNoNumber) {
  // A NaN is below every number; of NaNs the first column counts.
  auto some = chosenAmong({NAN, -inf, NAN}, 3, {1});
  auto none = chosenAmong({NAN, NAN, NAN}, 3, {0});
  auto again = [](const gptc::reference::Tensor &tensor) {
    return chosenAmong(tensor.among->data, 3, tensor.ints);
  };
  EXPECT_TRUE(compare(some, again(some), {1}).ok());
  EXPECT_FALSE(compare(some, again(some), {0}).ok());
  EXPECT_TRUE(compare(none, again(none), {0}).ok());
  EXPECT_FALSE(compare(none, again(none), {1}).ok());
  // Large numbers allow no other column of NaNs.
  auto large = chosenAmong({NAN, NAN, 1e9, 1}, 2, {0, 2});
  EXPECT_TRUE(compare(large, again(large), {0, 2}).ok());
  EXPECT_FALSE(compare(large, again(large), {1, 2}).ok());
}

TEST(CompareTest, TheSameNumbersHaveOneColumn) {
  // Nothing was rounded: of equal numbers it is the lowest.
  auto exact = chosenAmong({1, 1 + ulp, 1 + ulp}, 3, {1});
  EXPECT_TRUE(compare(exact, exact, {1}).ok());
  EXPECT_FALSE(compare(exact, exact, {0}).ok());
  EXPECT_FALSE(compare(exact, exact, {2}).ok());
}

TEST(CompareTest, IntegersAreThoseOfEitherPrecision) {
  gptc::reference::TensorRef exact = gptc::reference::makeInts({2}, {1, 7}),
                             plain = gptc::reference::makeInts({2}, {0, 7});
  EXPECT_TRUE(compare(*exact, *plain, {1, 7}).ok());
  EXPECT_TRUE(compare(*exact, *plain, {0, 7}).ok());
  EXPECT_FALSE(compare(*exact, *plain, {2, 7}).ok());
  EXPECT_FALSE(compare(*exact, *plain, {1, 6}).ok());
}

TEST(CompareTest, NothingAgrees) { EXPECT_TRUE(accepts({}, {})); }
