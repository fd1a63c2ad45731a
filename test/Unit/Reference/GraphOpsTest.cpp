// Embedding, linear algebra, layout, and the upstream tensor ops.
#include "Evaluate.h"

using namespace gptc::reference;

namespace {
using GraphOpsTest = EvaluateTest;
} // namespace

TEST_F(GraphOpsTest, EmbeddingPositionsAndSelectRows) {
  auto y = run(
      R"mlir(
    func.func @f(%w: tensor<3x2xf32>, %ids: tensor<?xi32>) -> tensor<?x2xf32> {
      %p = gpt.positions %ids : tensor<?xi32>
      %a = gpt.embedding %w, %ids : tensor<3x2xf32>, tensor<?xi32> -> tensor<?x2xf32>
      %b = gpt.embedding %w, %p : tensor<3x2xf32>, tensor<?xi32> -> tensor<?x2xf32>
      %x = arith.addf %a, %b : tensor<?x2xf32>
      %y = gpt.select_rows %x, %p : tensor<?x2xf32>, tensor<?xi32> -> tensor<?x2xf32>
      return %y : tensor<?x2xf32>
    })mlir",
      {makeTensor({3, 2}, {1, 2, 10, 20, 100, 200}), makeInts({2}, {2, 0})});
  expectNear(y, {101, 202, 11, 22});
}

TEST_F(GraphOpsTest, LinearInBothOrientations) {
  // W = [[1, 2], [3, 4], [5, 6]] is [out 3, in 2]; b = [10, 20, 30].
  auto y = run(R"mlir(
    func.func @f(%x: tensor<?x2xf32>, %w: tensor<3x2xf32>, %b: tensor<3xf32>) -> tensor<?x3xf32> {
      %y = gpt.linear %x, %w bias %b : tensor<?x2xf32>, tensor<3x2xf32>, tensor<3xf32> -> tensor<?x3xf32>
      return %y : tensor<?x3xf32>
    })mlir",
               {makeTensor({2, 2}, {1, 1, 1, -1}),
                makeTensor({3, 2}, {1, 2, 3, 4, 5, 6}),
                makeTensor({3}, {10, 20, 30})});
  expectNear(y, {13, 27, 41, 9, 19, 29});
}

TEST_F(GraphOpsTest, Conv1DIsInOut) {
  // GPT-2's square projection: [1, 0] -> [0, 1] and [0, 1] -> [0, 0].
  auto y =
      run(R"mlir(
    func.func @f(%x: tensor<?x2xf32>, %w: tensor<2x2xf32>) -> tensor<?x2xf32> {
      %y = gpt.linear %x, %w in_out : tensor<?x2xf32>, tensor<2x2xf32> -> tensor<?x2xf32>
      return %y : tensor<?x2xf32>
    })mlir",
          {makeTensor({2, 2}, {1, 0, 0, 1}), makeTensor({2, 2}, {0, 1, 0, 0})});
  expectNear(y, {0, 1, 0, 0});
}

TEST_F(GraphOpsTest, MatmulGroups) {
  // Four heads of a, two of b: heads 0, 1 meet b[0], heads 2, 3 meet b[1].
  auto y = run(R"mlir(
    func.func @f(%a: tensor<4x1x2xf32>, %b: tensor<2x2x1xf32>) -> tensor<4x1x1xf32> {
      %y = gpt.matmul %a, %b groups 2 : tensor<4x1x2xf32>, tensor<2x2x1xf32> -> tensor<4x1x1xf32>
      return %y : tensor<4x1x1xf32>
    })mlir",
               {makeTensor({4, 1, 2}, {1, 0, 0, 1, 1, 0, 0, 1}),
                makeTensor({2, 2, 1}, {1, 2, 3, 4})});
  expectNear(y, {1, 2, 3, 4});
}

TEST_F(GraphOpsTest, MatmulTransposed) {
  auto y = run(R"mlir(
    func.func @f(%a: tensor<1x1x2xf32>, %b: tensor<1x3x2xf32>) -> tensor<1x1x3xf32> {
      %y = gpt.matmul %a, %b transpose_b : tensor<1x1x2xf32>, tensor<1x3x2xf32> -> tensor<1x1x3xf32>
      return %y : tensor<1x1x3xf32>
    })mlir",
               {makeTensor({1, 1, 2}, {1, 10}),
                makeTensor({1, 3, 2}, {1, 2, 3, 4, 5, 6})});
  expectNear(y, {21, 43, 65});
}

TEST_F(GraphOpsTest, SplitAndHeads) {
  // Two tokens, [q | k] of width 2 each, two heads of size 1.
  auto results = tryRun(R"mlir(
    func.func @f(%x: tensor<?x4xf32>) -> (tensor<2x?x1xf32>, tensor<?x2xf32>) {
      %q, %k = gpt.split %x : tensor<?x4xf32> -> tensor<?x2xf32>, tensor<?x2xf32>
      %qh = gpt.split_heads %q : tensor<?x2xf32> -> tensor<2x?x1xf32>
      %kh = gpt.split_heads %k : tensor<?x2xf32> -> tensor<2x?x1xf32>
      %m = gpt.merge_heads %kh : tensor<2x?x1xf32> -> tensor<?x2xf32>
      return %qh, %m : tensor<2x?x1xf32>, tensor<?x2xf32>
    })mlir",
                        {makeTensor({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})});
  ASSERT_TRUE(mlir::succeeded(results)) << messages;
  EXPECT_EQ((*results)[0]->shape, (std::vector<int64_t>{2, 2, 1}));
  expectNear((*results)[0]->data, {1, 5, 2, 6});
  expectNear((*results)[1]->data, {3, 4, 7, 8});
}

TEST_F(GraphOpsTest, DropoutIsTheIdentity) {
  expectNear(run(R"mlir(
    func.func @f(%x: tensor<?x2xf32>) -> tensor<?x2xf32> {
      %y = gpt.dropout %x p 0.5 : tensor<?x2xf32>
      return %y : tensor<?x2xf32>
    })mlir",
                 {makeTensor({1, 2}, {3, 4})}),
             {3, 4});
}

TEST_F(GraphOpsTest, TensorOps) {
  // The last row, twice, scaled by a runtime scalar.
  auto y = run(R"mlir(
    func.func @f(%x: tensor<?x2xf32>, %s: f32) -> tensor<4xf32> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %n = tensor.dim %x, %c0 : tensor<?x2xf32>
      %last = arith.subi %n, %c1 : index
      %row = tensor.extract_slice %x[%last, 0] [1, 2] [1, 1] : tensor<?x2xf32> to tensor<1x2xf32>
      %both = tensor.concat dim(0) %row, %row : (tensor<1x2xf32>, tensor<1x2xf32>) -> tensor<2x2xf32>
      %flat = tensor.collapse_shape %both [[0, 1]] : tensor<2x2xf32> into tensor<4xf32>
      %scale = tensor.splat %s : tensor<4xf32>
      %y = arith.mulf %flat, %scale : tensor<4xf32>
      return %y : tensor<4xf32>
    })mlir",
               {makeTensor({3, 2}, {1, 2, 3, 4, 5, 6}), makeTensor({}, {10})});
  expectNear(y, {50, 60, 50, 60});
}

TEST_F(GraphOpsTest, EmptySequence) {
  auto y = run(R"mlir(
    func.func @f(%x: tensor<?x2xf32>, %w: tensor<3x2xf32>) -> tensor<?x3xf32> {
      %y = gpt.linear %x, %w : tensor<?x2xf32>, tensor<3x2xf32> -> tensor<?x3xf32>
      return %y : tensor<?x3xf32>
    })mlir",
               {makeTensor({0, 2}, {}), makeTensor({3, 2}, repeat(6, 1))});
  EXPECT_TRUE(y.empty());
}

TEST_F(GraphOpsTest, HeadPart) {
  // Two heads of q, k, v, one row each, in [out, in]; k is rows 1 and 4.
  auto k =
      run(R"mlir(
    func.func @f(%w: tensor<6x2xf32>) -> tensor<2x2xf32> {
      %k = gpt.head_part %w axis 0 from 1 take 1 of 3 : tensor<6x2xf32> -> tensor<2x2xf32>
      return %k : tensor<2x2xf32>
    })mlir",
          {makeTensor({6, 2}, {0, 1, 10, 11, 20, 21, 30, 31, 40, 41, 50, 51})});
  expectNear(k, {10, 11, 40, 41});
  // The last two of three columns, twice, in [in, out].
  auto columns = run(
      R"mlir(
    func.func @f(%w: tensor<2x6xf32>) -> tensor<2x4xf32> {
      %k = gpt.head_part %w axis 1 from 1 take 2 of 3 : tensor<2x6xf32> -> tensor<2x4xf32>
      return %k : tensor<2x4xf32>
    })mlir",
      {makeTensor({2, 6}, {0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15})});
  expectNear(columns, {1, 2, 4, 5, 11, 12, 14, 15});
}

TEST_F(GraphOpsTest, ArgmaxTakesTheLowestOfEqualNumbers) {
  double nan = std::nan(""), inf = INFINITY;
  mlir::FailureOr<Results> results = tryRun(
      R"mlir(
    func.func @f(%x: tensor<?x4xf32>) -> tensor<?xi32> {
      %y = gpt.argmax %x : tensor<?x4xf32> -> tensor<?xi32>
      return %y : tensor<?xi32>
    })mlir",
      {makeTensor({6, 4}, {1,    3,    3,    2,       //
                           -1,   -1,   -1,   -1,      //
                           nan,  -inf, -inf, nan,     //
                           nan,  nan,  nan,  nan,     //
                           -inf, -inf, -inf, -3.4e38, //
                           0.0,  -0.0, inf,  nan})});
  ASSERT_TRUE(succeeded(results));
  EXPECT_EQ((*results)[0]->ints, (std::vector<int64_t>{1, 0, 1, 0, 3, 2}));
}

/// Its bound is no longer that of the numbers among which argmax chose.
TEST_F(GraphOpsTest, ScaledMaximaAreNoChoice) {
  mlir::FailureOr<Results> results = tryRun(
      R"mlir(
    func.func @f(%x: tensor<?x2xf32>, %w: tensor<32x2xf32>) -> (tensor<?x2xf32>, tensor<?x2xf32>) {
      %y, %c = gpt.fused_gemm %x : tensor<?x2xf32> argmax 16 section %w : tensor<32x2xf32> -> (tensor<?x2xf32>, tensor<?x2xi32>)
      %s = gpt.scale %y by 1.0e6 : tensor<?x2xf32>
      return %y, %s : tensor<?x2xf32>, tensor<?x2xf32>
    })mlir",
      {makeTensor({1, 2}, {1, 2}), makeTensor({32, 2}, std::vector(64, 1.0))});
  ASSERT_TRUE(succeeded(results)) << messages;
  EXPECT_TRUE((*results)[0]->among);
  EXPECT_FALSE((*results)[1]->among);
}

TEST_F(GraphOpsTest, SumsOfIntegersWrap) {
  mlir::FailureOr<Results> results = tryRun(
      R"mlir(
    func.func @f(%a: tensor<2xi32>, %b: tensor<2xi32>) -> (tensor<2xi32>, tensor<2xi32>) {
      %s = arith.addi %a, %b : tensor<2xi32>
      %d = arith.subi %a, %b : tensor<2xi32>
      return %s, %d : tensor<2xi32>, tensor<2xi32>
    })mlir",
      {makeInts({2}, {INT32_MAX, INT32_MIN}), makeInts({2}, {1, 1})});
  ASSERT_TRUE(succeeded(results)) << messages;
  EXPECT_EQ((*results)[0]->ints,
            (std::vector<int64_t>{INT32_MIN, INT32_MIN + 1}));
  EXPECT_EQ((*results)[1]->ints,
            (std::vector<int64_t>{INT32_MAX - 1, INT32_MAX}));
}
