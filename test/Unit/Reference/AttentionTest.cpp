// Masks, softmax and attention, unfused and as gpt.flash_attention.
#include "Evaluate.h"

using namespace gptc::reference;

namespace {
class AttentionTest : public EvaluateTest {
protected:
  /// q, k, v of H, H / groups heads: the unfused spelling and the fused op,
  /// which must agree.
  std::vector<double> attention(int64_t heads, int64_t kvHeads, int64_t D,
                                int64_t Sq, int64_t Sk, bool causal,
                                double scale, std::vector<double> q,
                                std::vector<double> k, std::vector<double> v) {
    auto type = [](int64_t h, const std::string &last) {
      return "tensor<" + std::to_string(h) + "x?x" + last + "xf32>";
    };
    std::string qType = type(heads, std::to_string(D));
    std::string kType = type(kvHeads, std::to_string(D));
    std::string sType = type(heads, "?");
    std::string groups = " groups " + std::to_string(heads / kvHeads);
    std::string factor = std::to_string(scale);
    std::string header = "func.func @f(%q: " + qType + ", %k: " + kType +
                         ", %v: " + kType + ") -> " + qType + " {\n";
    std::string footer = "return %o : " + qType + "\n}";
    std::vector<TensorRef> args = {makeTensor({heads, Sq, D}, q),
                                   makeTensor({kvHeads, Sk, D}, k),
                                   makeTensor({kvHeads, Sk, D}, v)};
    auto fused = run(header + "%o = gpt.flash_attention %q, %k, %v " +
                         (causal ? "causal " : "") + "scale " + factor +
                         groups + " : " + qType + ", " + kType + "\n" + footer,
                     args);
    auto unfused =
        run(header + "%s = gpt.matmul %q, %k transpose_b" + groups + " : " +
                qType + ", " + kType + " -> " + sType +
                "\n%ss = gpt.scale %s by " + factor + " : " + sType + "\n" +
                (causal ? "%m = gpt.causal_mask %ss : " + sType + "\n"
                        : "%m = gpt.dropout %ss p 0.0 : " + sType + "\n") +
                "%p = gpt.softmax %m : " + sType + "\n%o = gpt.matmul %p, %v" +
                groups + " : " + sType + ", " + kType + " -> " + qType + "\n" +
                footer,
            args);
    expectNear(fused, unfused, 1e-12);
    return fused;
  }

  /// Q = 0, V[j] = j, one head of size 1.
  std::vector<double> uniform(int64_t Sq, int64_t Sk) {
    return attention(1, 1, 1, Sq, Sk, true, 1.0, repeat(Sq, 0), repeat(Sk, 0),
                     iota(Sk));
  }
};
} // namespace

TEST_F(AttentionTest, CausalIsAlignedBottomRight) {
  expectNear(uniform(2, 5), {1.5, 2.0});
  expectNear(uniform(1, 5), {2.0});
  expectNear(uniform(5, 5), {0, 0.5, 1, 1.5, 2});
  // More queries than keys: the first rows see nothing.
  expectNear(uniform(5, 2), {0, 0, 0, 0, 0.5});
  for (auto [Sq, Sk] : {std::pair(3, 128), std::pair(64, 65), std::pair(65, 64),
                        std::pair(127, 129)}) {
    auto rows = uniform(Sq, Sk);
    ASSERT_EQ(rows.size(), size_t(Sq));
    for (int i = 0; i < Sq; ++i)
      EXPECT_NEAR(rows[i], std::max(0, i + Sk - Sq) / 2.0, 1e-12);
  }
}

TEST_F(AttentionTest, LogSoftmax) {
  const double inf = std::numeric_limits<double>::infinity();
  auto rows = [&](std::vector<double> x) {
    return run(R"mlir(
      func.func @f(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
        %y = gpt.log_softmax %x : tensor<?x3xf32>
        return %y : tensor<?x3xf32>
      })mlir",
               {makeTensor({1, 3}, x)});
  };
  const double l = std::log(1 + std::exp(-1.0) + std::exp(-2.0));
  expectNear(rows({7, 8, 9}), {-2 - l, -1 - l, -l});
  // A probability of exp(-1000) is no number of f32; its logarithm is.
  expectNear(rows({0, -1000, -1000}), {0, -1000, -1000});
  EXPECT_EQ(rows({5, -inf, -inf}), (std::vector<double>{0, -inf, -inf}));
  EXPECT_EQ(rows({-inf, -inf, -inf}), (std::vector<double>{-inf, -inf, -inf}));
}

TEST_F(AttentionTest, NoKeysGiveZero) { expectNear(uniform(2, 0), {0, 0}); }

TEST_F(AttentionTest, EveryQueryHeadHasItsKVHead) {
  for (auto [heads, kvHeads] :
       {std::pair(6, 2), std::pair(8, 1), std::pair(12, 2), std::pair(32, 8),
        std::pair(12, 3), std::pair(4, 4)}) {
    std::vector<double> v(kvHeads), expected(heads);
    for (int g = 0; g < kvHeads; ++g)
      v[g] = g + 1;
    for (int h = 0; h < heads; ++h)
      expected[h] = h / (heads / kvHeads) + 1;
    expectNear(attention(heads, kvHeads, 1, 1, 1, true, 1.0, repeat(heads, 0),
                         repeat(kvHeads, 0), v),
               expected);
  }
}

TEST_F(AttentionTest, TheScaleMultipliesTheProduct) {
  // q = k0 = [1, 1, 1, 1], k1 = 0, V = [1, 0] in every channel: sigmoid(4 s).
  auto output = [&](double scale) {
    return attention(1, 1, 4, 1, 2, false, scale, repeat(4, 1),
                     {1, 1, 1, 1, 0, 0, 0, 0}, {1, 1, 1, 1, 0, 0, 0, 0});
  };
  expectNear(output(1.0), repeat(4, 0.9820138), 1e-7);
  expectNear(output(0.5), repeat(4, 0.8807971), 1e-7);
  expectNear(output(0.25), repeat(4, 0.7310586), 1e-7);
}

TEST_F(AttentionTest, HugeScores) {
  // One-hot weights; the larger score wins without NaN.
  expectNear(attention(1, 1, 1, 1, 2, false, 1.0, {1e4}, {1, 2}, {3, 7}), {7});
  expectNear(attention(1, 1, 1, 1, 2, false, 1.0, {-40}, {1, 1}, {1, 1}), {1});
}

TEST_F(AttentionTest, MasksAndEmptyRows) {
  const double hidden = -std::numeric_limits<double>::infinity();
  std::string additive = R"mlir(
    func.func @f(%s: tensor<1x3x2xf32>, %m: tensor<3x2xf32>) -> tensor<1x3x2xf32> {
      %h = gpt.mask %s, %m : tensor<1x3x2xf32>, tensor<3x2xf32>
      %p = gpt.softmax %h : tensor<1x3x2xf32>
      return %p : tensor<1x3x2xf32>
    })mlir";
  TensorRef scores = makeTensor({1, 3, 2}, {0, 0, 5, 7, 0, std::log(3.0)});
  expectNear(
      run(additive, {scores, makeTensor({3, 2}, {0, 0, hidden, hidden, 0, 0})}),
      {0.5, 0.5, 0, 0, 0.25, 0.75});

  std::string boolean = R"mlir(
    func.func @f(%s: tensor<1x3x2xf32>, %m: tensor<3x2xi1>) -> tensor<1x3x2xf32> {
      %h = gpt.mask %s, %m : tensor<1x3x2xf32>, tensor<3x2xi1>
      %p = gpt.softmax %h : tensor<1x3x2xf32>
      return %p : tensor<1x3x2xf32>
    })mlir";
  expectNear(run(boolean, {scores, makeInts({3, 2}, {1, 1, 0, 0, 0, 1})}),
             {0.5, 0.5, 0, 0, 0, 1});
}

TEST_F(AttentionTest, MasksServeTheDimensionsThatTheyDoNotHave) {
  // Scores 0 of 2 heads, 2 queries, 3 keys; V[j] = j by the weights alone.
  auto masked = [&](const std::string &type, TensorRef mask) {
    return run("func.func @f(%s: tensor<2x2x3xf32>, %m: tensor<" + type +
                   ">) -> tensor<2x2x3xf32> {\n"
                   "%h = gpt.mask %s, %m : tensor<2x2x3xf32>, tensor<" +
                   type +
                   ">\n%p = gpt.softmax %h : tensor<2x2x3xf32>\n"
                   "return %p : tensor<2x2x3xf32>\n}",
               {makeTensor({2, 2, 3}, repeat(12, 0)), mask});
  };
  const std::vector<double> keyHidden = {0.5, 0.5, 0}, all = repeat(3, 1.0 / 3);
  auto rows = [](std::vector<std::vector<double>> parts) {
    std::vector<double> joined;
    for (auto &part : parts)
      joined.insert(joined.end(), part.begin(), part.end());
    return joined;
  };
  auto everywhere = rows({keyHidden, keyHidden, keyHidden, keyHidden});
  expectNear(masked("3xi1", makeInts({3}, {1, 1, 0})), everywhere);
  expectNear(masked("1x3xi1", makeInts({1, 3}, {1, 1, 0})), everywhere);
  expectNear(masked("1x1x3xf32", makeTensor({1, 1, 3}, {0, 0, -INFINITY})),
             everywhere);
  // By query, and by head.
  expectNear(masked("2x1xi1", makeInts({2, 1}, {1, 0})),
             rows({all, repeat(3, 0), all, repeat(3, 0)}));
  expectNear(masked("2x1x3xi1", makeInts({2, 1, 3}, {1, 1, 1, 1, 1, 0})),
             rows({all, all, keyHidden, keyHidden}));
}

TEST_F(AttentionTest, AFilledRowIsNotHidden) {
  auto y = run(
      R"mlir(
    func.func @f(%s: tensor<1x2x2xf32>, %m: tensor<2x2xi1>) -> tensor<1x2x2xf32> {
      %h = gpt.mask %s, %m fill -1.0e9 : tensor<1x2x2xf32>, tensor<2x2xi1>
      %p = gpt.softmax %h : tensor<1x2x2xf32>
      return %p : tensor<1x2x2xf32>
    })mlir",
      {makeTensor({1, 2, 2}, {3, 5, 3, 5}), makeInts({2, 2}, {1, 0, 0, 0})});
  expectNear(y, {1, 0, 0.5, 0.5});
}

TEST_F(AttentionTest, MasksInTheOrderWritten) {
  // Scores 0 and 1: filled with 3 where hidden, log 2 added to the second key.
  auto attended = [&](const std::string &masks, const std::string &types) {
    return run("func.func @f(%q: tensor<1x1x1xf32>, %k: tensor<1x2x1xf32>, "
               "%v: tensor<1x2x1xf32>, %see: tensor<2xi1>, "
               "%add: tensor<1x2xf32>) -> tensor<1x1x1xf32> {\n"
               "%o = gpt.flash_attention %q, %k, %v mask " +
                   masks +
                   " fill 3.0 scale 1.0 : tensor<1x1x1xf32>, "
                   "tensor<1x2x1xf32> mask " +
                   types + "\nreturn %o : tensor<1x1x1xf32>\n}",
               {makeTensor({1, 1, 1}, {1}), makeTensor({1, 2, 1}, {0, 1}),
                makeTensor({1, 2, 1}, {0, 1}), makeInts({2}, {1, 0}),
                makeTensor({1, 2}, {0, std::log(2.0)})});
  };
  double fill = std::exp(3.0);
  expectNear(attended("%see, %add", "tensor<2xi1>, tensor<1x2xf32>"),
             {2 * fill / (1 + 2 * fill)});
  expectNear(attended("%add, %see", "tensor<1x2xf32>, tensor<2xi1>"),
             {fill / (1 + fill)});
}

TEST_F(AttentionTest, AWindowCountsItsOwnKey) {
  auto mask = [&](int64_t Sq, int64_t Sk, int window) {
    return run("func.func @f(%s: tensor<1x?x?xf32>) -> tensor<1x?x?xf32> {\n"
               "%m = gpt.causal_mask %s window " +
                   std::to_string(window) +
                   " : tensor<1x?x?xf32>\n%p = gpt.softmax %m : "
                   "tensor<1x?x?xf32>\nreturn %p : tensor<1x?x?xf32>\n}",
               {makeTensor({1, Sq, Sk}, repeat(Sq * Sk, 0))});
  };
  expectNear(mask(3, 3, 1), {1, 0, 0, 0, 1, 0, 0, 0, 1});
  expectNear(mask(3, 3, 2), {1, 0, 0, 0.5, 0.5, 0, 0, 0.5, 0.5});
  expectNear(mask(2, 4, 2), {0, 0.5, 0.5, 0, 0, 0, 0.5, 0.5});
  expectNear(mask(1, 2, 9), {0.5, 0.5});
}

TEST_F(AttentionTest, AlibiIsAlignedBottomRight) {
  auto y = run(R"mlir(
    func.func @f(%s: tensor<2x2x3xf32>) -> tensor<2x2x3xf32> {
      %b = gpt.alibi %s slopes [0.5, 0.25] : tensor<2x2x3xf32>
      return %b : tensor<2x2x3xf32>
    })mlir",
               {makeTensor({2, 2, 3}, repeat(12, 10))});
  expectNear(y, {9.5, 10, 10.5, 9, 9.5, 10, 9.75, 10, 10.25, 9.5, 9.75, 10});
}

TEST_F(AttentionTest, SoftcapBendsToItsCap) {
  auto y = run(R"mlir(
    func.func @f(%s: tensor<5xf32>) -> tensor<5xf32> {
      %c = gpt.softcap %s at 50.0 : tensor<5xf32>
      return %c : tensor<5xf32>
    })mlir",
               {makeTensor({5}, {0, 1, 50, -1e30, -INFINITY})});
  // 50 tanh(1 / 50), 50 tanh(1).
  expectNear(y, {0, 0.99986669, 38.0797078, -50, -50}, 1e-7);
}

// Everything that may stand between the product and the softmax, spelled out
// and in the one op: two KV heads of two query heads, of different slopes.
TEST_F(AttentionTest, TheFusedOpIsItsParts) {
  std::vector<double> q, k, v;
  for (int i = 0; i < 4 * 3 * 2; ++i)
    q.push_back(std::sin(i * 1.7) * 3);
  for (int i = 0; i < 2 * 5 * 2; ++i) {
    k.push_back(std::cos(i * 2.3) * 3);
    v.push_back(std::sin(i * 0.9));
  }
  std::vector<TensorRef> args = {
      makeTensor({4, 3, 2}, q), makeTensor({2, 5, 2}, k),
      makeTensor({2, 5, 2}, v), makeInts({1, 5}, {1, 1, 0, 1, 1})};
  auto fused = run(R"mlir(
    func.func @f(%q: tensor<4x3x2xf32>, %k: tensor<2x5x2xf32>, %v: tensor<2x5x2xf32>, %m: tensor<1x5xi1>) -> tensor<4x3x2xf32> {
      %o = gpt.flash_attention %q, %k, %v mask %m fill -3.0 causal window 3 scale 0.5 softcap 2.0 alibi [0.5, 0.25, 2.0, 0.0] groups 2
          : tensor<4x3x2xf32>, tensor<2x5x2xf32> mask tensor<1x5xi1>
      return %o : tensor<4x3x2xf32>
    })mlir",
                   args);
  auto unfused = run(R"mlir(
    func.func @f(%q: tensor<4x3x2xf32>, %k: tensor<2x5x2xf32>, %v: tensor<2x5x2xf32>, %m: tensor<1x5xi1>) -> tensor<4x3x2xf32> {
      %s = gpt.matmul %q, %k transpose_b groups 2 : tensor<4x3x2xf32>, tensor<2x5x2xf32> -> tensor<4x3x5xf32>
      %t = gpt.scale %s by 0.5 : tensor<4x3x5xf32>
      %c = gpt.softcap %t at 2.0 : tensor<4x3x5xf32>
      %b = gpt.alibi %c slopes [0.5, 0.25, 2.0, 0.0] : tensor<4x3x5xf32>
      %w = gpt.mask %b, %m fill -3.0 : tensor<4x3x5xf32>, tensor<1x5xi1>
      %h = gpt.causal_mask %w window 3 : tensor<4x3x5xf32>
      %p = gpt.softmax %h : tensor<4x3x5xf32>
      %o = gpt.matmul %p, %v groups 2 : tensor<4x3x5xf32>, tensor<2x5x2xf32> -> tensor<4x3x2xf32>
      return %o : tensor<4x3x2xf32>
    })mlir",
                     args);
  expectNear(fused, unfused, 1e-12);
}

TEST_F(AttentionTest, BroadcastToTheSizesOfSeveral) {
  auto y = run(
      R"mlir(
    func.func @f(%x: tensor<?x1xf32>, %like: tensor<?xi1>) -> tensor<?x?xf32> {
      %y = gpt.broadcast %x like %like, %x : tensor<?x1xf32>, tensor<?xi1>, tensor<?x1xf32> -> tensor<?x?xf32>
      return %y : tensor<?x?xf32>
    })mlir",
      {makeTensor({2, 1}, {3, 4}), makeInts({3}, {1, 1, 1})});
  expectNear(y, {3, 3, 3, 4, 4, 4});
}

TEST_F(AttentionTest, BroadcastRepeatsAlongNewDimensions) {
  expectNear(
      run(R"mlir(
    func.func @f(%x: tensor<2x1xf32>, %like: tensor<2x2x3xf32>) -> tensor<2x2x3xf32> {
      %y = gpt.broadcast %x like %like : tensor<2x1xf32>, tensor<2x2x3xf32> -> tensor<2x2x3xf32>
      return %y : tensor<2x2x3xf32>
    })mlir",
          {makeTensor({2, 1}, {7, 8}), makeTensor({2, 2, 3}, repeat(12, 0))}),
      {7, 7, 7, 8, 8, 8, 7, 7, 7, 8, 8, 8});
  expectNear(run(R"mlir(
    func.func @f(%x: tensor<f32>, %like: tensor<2x?xi1>) -> tensor<2x?xf32> {
      %y = gpt.broadcast %x like %like : tensor<f32>, tensor<2x?xi1> -> tensor<2x?xf32>
      return %y : tensor<2x?xf32>
    })mlir",
                 {makeTensor({}, {7}), makeInts({2, 2}, {0, 0, 0, 0})}),
             repeat(4, 7));
}

TEST_F(AttentionTest, NaNScoresStayVisible) {
  auto y = run(R"mlir(
    func.func @f(%s: tensor<1x2xf32>) -> tensor<1x2xf32> {
      %p = gpt.softmax %s : tensor<1x2xf32>
      return %p : tensor<1x2xf32>
    })mlir",
               {makeTensor({1, 2}, {NAN, 1})});
  ASSERT_EQ(y.size(), 2u);
  EXPECT_TRUE(std::isnan(y[0]));
}
