// Elementwise ops: the GELU kinds, SiLU, and arith and math on tensors.
#include "Evaluate.h"

using namespace gptc::reference;

namespace {
class ActivationTest : public EvaluateTest {
protected:
  double activate(const char *op, double x) {
    std::string text = "func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {\n"
                       "  %y = gpt." +
                       std::string(op) +
                       " %x : tensor<?xf32>\n"
                       "  return %y : tensor<?xf32>\n}";
    auto y = run(text, {makeTensor({1}, {x})});
    return y.empty() ? NAN : y[0];
  }
};
} // namespace

TEST_F(ActivationTest, GeluKindsDiffer) {
  EXPECT_NEAR(activate("gelu erf", 1), 0.8413447, 1e-7);
  EXPECT_NEAR(activate("gelu tanh", 1), 0.8411920, 1e-7);
  EXPECT_NEAR(activate("gelu quick", 1), 0.8457958, 1e-7);
  EXPECT_NEAR(activate("gelu erf", -3), -0.00404969, 1e-8);
  EXPECT_NEAR(activate("gelu tanh", -3), -0.00363739, 1e-8);
  EXPECT_NEAR(activate("gelu quick", -3), -0.0180713, 1e-7);
}

TEST_F(ActivationTest, GeluNegativeTail) {
  EXPECT_NEAR(activate("gelu tanh", -6), -8.44e-11, 1e-13);
  EXPECT_NEAR(activate("gelu erf", -6), -5.92e-9, 1e-11);
}

TEST_F(ActivationTest, ExtremesNeverGiveNaN) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const char *op : {"gelu erf", "gelu tanh", "gelu quick", "silu"}) {
    for (double x : {-1e4, -1e30, -infinity}) {
      double y = activate(op, x);
      EXPECT_EQ(y, 0.0) << op << " of " << x;
      EXPECT_TRUE(std::signbit(y)) << op << " of " << x;
    }
    EXPECT_EQ(activate(op, 0), 0.0);
    EXPECT_EQ(activate(op, 1e4), 1e4);
    EXPECT_EQ(activate(op, infinity), infinity);
    EXPECT_TRUE(std::isnan(activate(op, NAN)));
  }
  EXPECT_DOUBLE_EQ(activate("gelu tanh", 21.657723), 21.657723);
}

TEST_F(ActivationTest, Silu) {
  // 1 / (1 + e^-1) and ln 3 * 3 / 4.
  EXPECT_NEAR(activate("silu", 1), 0.7310585786300049, 1e-15);
  EXPECT_NEAR(activate("silu", std::log(3.0)), std::log(3.0) * 0.75, 1e-15);
}

TEST_F(ActivationTest, ArithAndMathOnTensors) {
  auto y = run(R"mlir(
    func.func @f(%a: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<2xf32> {
      %two = arith.constant dense<2.0> : tensor<2xf32>
      %s = arith.addf %a, %b : tensor<2xf32>
      %d = arith.subf %s, %two : tensor<2xf32>
      %m = arith.mulf %d, %two : tensor<2xf32>
      %q = arith.divf %m, %b : tensor<2xf32>
      %n = arith.negf %q : tensor<2xf32>
      %r = math.fma %n, %two, %a : tensor<2xf32>
      return %r : tensor<2xf32>
    })mlir",
               {makeTensor({2}, {1, 5}), makeTensor({2}, {4, 8})});
  // -(2 (a + b - 2) / b) * 2 + a
  expectNear(y, {-2.0, -0.5});
}

TEST_F(ActivationTest, MathFunctions) {
  auto y = run(R"mlir(
    func.func @f(%a: tensor<1xf32>) -> tensor<1xf32> {
      %s = math.sqrt %a : tensor<1xf32>
      %r = math.rsqrt %a : tensor<1xf32>
      %e = math.exp %r : tensor<1xf32>
      %t = math.tanh %s : tensor<1xf32>
      %p = math.erf %r : tensor<1xf32>
      %x = arith.addf %e, %t : tensor<1xf32>
      %z = arith.addf %x, %p : tensor<1xf32>
      return %z : tensor<1xf32>
    })mlir",
               {makeTensor({1}, {4})});
  // e^0.5 + tanh 2 + erf 0.5
  expectNear(y, {1.6487212707001282 + 0.9640275800758169 + 0.5204998778130465});
}

TEST_F(ActivationTest, MaximumPropagatesNaNAndMaxnumDoesNot) {
  auto y = run(R"mlir(
    func.func @f(%a: f32, %b: f32) -> (f32, f32) {
      %m = arith.maximumf %a, %b : f32
      %n = arith.maxnumf %a, %b : f32
      return %m, %n : f32, f32
    })mlir",
               {makeTensor({}, {NAN}), makeTensor({}, {3})});
  ASSERT_EQ(y.size(), 1u);
  EXPECT_TRUE(std::isnan(y[0]));
}
