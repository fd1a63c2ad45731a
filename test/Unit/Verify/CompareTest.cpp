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

TEST(CompareTest, NothingAgrees) { EXPECT_TRUE(accepts({}, {})); }
