// layer_norm and rms_norm: cancellation and epsilon.
#include "Evaluate.h"

using namespace gptc::reference;

namespace {
class NormTest : public EvaluateTest {
protected:
  /// gamma 1, beta 0.
  std::vector<double> norm(bool layer, const char *eps, std::vector<double> x) {
    int64_t n = x.size();
    std::string type = "tensor<?x" + std::to_string(n) + "xf32>";
    std::string row = "tensor<" + std::to_string(n) + "xf32>";
    std::string op = layer
                         ? "gpt.layer_norm %x, %g, %b eps " + std::string(eps) +
                               " : " + type + ", " + row + ", " + row
                         : "gpt.rms_norm %x, %g eps " + std::string(eps) +
                               " : " + type + ", " + row;
    std::string text = "func.func @f(%x: " + type + ", %g: " + row +
                       ", %b: " + row + ") -> " + type + " {\n  %y = " + op +
                       "\n  return %y : " + type + "\n}";
    return run(text, {makeTensor({1, n}, x), makeTensor({n}, repeat(n, 1)),
                      makeTensor({n}, repeat(n, 0))});
  }
};
} // namespace

TEST_F(NormTest, LayerNormOfALargeMean) {
  // Deviations -1.5 .. 1.5, variance 1.25.
  expectNear(norm(true, "1.0e-5", {40000, 40001, 40002, 40003}),
             {-1.341635, -0.447212, 0.447212, 1.341635}, 1e-6);
  expectNear(norm(true, "1.0e-5", repeat(256, 1234)), repeat(256, 0));
}

TEST_F(NormTest, SampleStandardDeviation) {
  // Deviations -1.5 .. 1.5, sample variance 5 / 3; eps is added to its root.
  std::vector<TensorRef> args = {makeTensor({1, 4}, {6, 7, 8, 9}),
                                 makeTensor({4}, {1, 1, 1, 10}),
                                 makeTensor({4}, {0, 0, 0, 2})};
  auto norm = [&](const char *eps) {
    return run(std::string(R"mlir(
      func.func @f(%x: tensor<?x4xf32>, %g: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<?x4xf32> {
        %y = gpt.layer_norm %x, %g, %b sample eps )mlir") +
                   eps + R"mlir( : tensor<?x4xf32>, tensor<4xf32>, tensor<4xf32>
        return %y : tensor<?x4xf32>
      })mlir",
               args);
  };
  double s = std::sqrt(5.0 / 3.0);
  expectNear(norm("1.0e-30"), {-1.5 / s, -0.5 / s, 0.5 / s, 15 / s + 2}, 1e-12);
  s += 0.5;
  expectNear(norm("0.5"), {-1.5 / s, -0.5 / s, 0.5 / s, 15 / s + 2}, 1e-12);
}

TEST_F(NormTest, RmsNorm) {
  expectNear(norm(false, "1.0e-5", repeat(768, 300)), repeat(768, 1), 1e-9);
  expectNear(norm(false, "1.0e-5", repeat(8, 0)), repeat(8, 0));
  std::vector<double> oneHot = repeat(4096, 0);
  oneHot[0] = 100;
  auto y = norm(false, "1.0e-5", oneHot);
  ASSERT_EQ(y.size(), 4096u);
  EXPECT_NEAR(y[0], 63.99987, 1e-5);
}

TEST_F(NormTest, EpsilonIsTheOneWritten) {
  expectNear(norm(true, "1.0e-12", {1e-6, -1e-6}), {0.7071068, -0.7071068},
             1e-7);
  expectNear(norm(true, "1.0e-5", {1e-6, -1e-6}), {3.16228e-4, -3.16228e-4},
             1e-9);
  expectNear(norm(true, "1.0e-8", {0, 0}), {0, 0});
  expectNear(norm(false, "1.0e-8", {0, 0}), {0, 0});
}

TEST_F(NormTest, GammaAndBeta) {
  // Rows [1, 3] and [5, 1]: mean 2 and 3, variance 1 and 4.
  auto y = run(R"mlir(
    func.func @f(%x: tensor<?x2xf32>, %g: tensor<2xf32>, %b: tensor<2xf32>) -> tensor<?x2xf32> {
      %y = gpt.layer_norm %x, %g, %b eps 1.0e-30 : tensor<?x2xf32>, tensor<2xf32>, tensor<2xf32>
      return %y : tensor<?x2xf32>
    })mlir",
               {makeTensor({2, 2}, {1, 3, 5, 1}), makeTensor({2}, {10, 100}),
                makeTensor({2}, {1, 2})});
  expectNear(y, {-9, 102, 11, -98});
}
