// What the evaluator refuses, and how it says so.
#include "Evaluate.h"

using namespace gptc::reference;

namespace {
class ErrorTest : public EvaluateTest {
protected:
  const std::string embedding = R"mlir(
    func.func @f(%w: tensor<3x1xf32>, %ids: tensor<?xi32>) -> tensor<?x1xf32> {
      %x = gpt.embedding %w, %ids : tensor<3x1xf32>, tensor<?xi32> -> tensor<?x1xf32>
      return %x : tensor<?x1xf32>
    })mlir";
  TensorRef table = makeTensor({3, 1}, {0, 1, 2});
};
} // namespace

TEST_F(ErrorTest, IdsOutsideTheTable) {
  for (int64_t id : {int64_t(-1), int64_t(3), int64_t(2147483647)})
    expectContains(error(embedding, {table, makeInts({2}, {0, id})}),
                   "expected an id from 0 to 2 at index 1, got " +
                       std::to_string(id));
}

TEST_F(ErrorTest, ArgumentsThatDoNotMatch) {
  expectContains(error(embedding, {table}), "expected 2 arguments, got 1");
  expectContains(error(embedding, {table, makeTensor({1}, {0})}), "got floats");
  expectContains(
      error(embedding, {makeTensor({2, 1}, {0, 1}), makeInts({0}, {})}),
      "got shape 2x1");
  expectContains(error(embedding, {table, makeInts({3}, {0})}),
                 "1 elements for shape 3");
  expectContains(error(embedding, {table, nullptr}), "got no value");
}

TEST_F(ErrorTest, ExtentsThatDisagree) {
  expectContains(error(R"mlir(
    func.func @f(%a: tensor<?xf32>, %b: tensor<?xf32>) -> tensor<?xf32> {
      %c = arith.addf %a, %b : tensor<?xf32>
      return %c : tensor<?xf32>
    })mlir",
                       {makeTensor({2}, {1, 2}), makeTensor({3}, {1, 2, 3})}),
                 "expected operands of one shape, got 2 and 3");
}

TEST_F(ErrorTest, AnOpWithoutARule) {
  expectContains(error(R"mlir(
    func.func @f(%a: tensor<?xf32>) -> tensor<?xf32> {
      %c = math.atan %a : tensor<?xf32>
      return %c : tensor<?xf32>
    })mlir",
                       {makeTensor({1}, {1})}),
                 "no rule to evaluate 'math.atan'");
}

TEST_F(ErrorTest, AFunctionThatCallsItself) {
  expectContains(error(R"mlir(
    func.func @f(%a: f32) -> f32 {
      %c = func.call @f(%a) : (f32) -> f32
      return %c : f32
    })mlir",
                       {makeTensor({}, {1})}),
                 "does it call itself?");
}

TEST_F(ErrorTest, TooManyElements) {
  expectContains(error(R"mlir(
    func.func @f() -> tensor<1000000000000xf32> {
      %c = arith.constant dense<0.0> : tensor<1000000000000xf32>
      return %c : tensor<1000000000000xf32>
    })mlir",
                       {}),
                 "got shape 1000000000000");
}

TEST_F(ErrorTest, AFunctionWithoutABody) {
  expectContains(error("func.func private @f()", {}), "with a body");
}
