//===- SamplerTest.cpp - Choosing tokens ----------------------------------===//
#include "gptc/Runtime/Text/Sampler.h"
#include <cmath>
#include <gtest/gtest.h>
#include <set>

using namespace gptc::text;

static Sampler make(SamplerOptions options) {
  std::string error;
  auto sampler = Sampler::create(options, error);
  EXPECT_TRUE(sampler) << error;
  return *sampler;
}

static int32_t sample(Sampler &sampler, std::vector<float> logits) {
  std::string error;
  auto id = sampler.sample(logits, error);
  EXPECT_TRUE(id) << error;
  return id.value_or(-1);
}

TEST(SplitMix64, PublishedSequence) {
  // The first outputs for seed 1234567 (Vigna's splitmix64.c).
  SplitMix64 random(1234567);
  EXPECT_EQ(random.next(), 6457827717110365317u);
  EXPECT_EQ(random.next(), 3203168211198807973u);
  EXPECT_EQ(random.next(), 9817491932198370423u);
}

TEST(Sampler, GreedyTakesTheLowestIdOfEquals) {
  Sampler sampler = make({});
  EXPECT_EQ(sample(sampler, {1, 3, 3, 2}), 1);
  EXPECT_EQ(sample(sampler, {NAN, -5, NAN}), 1);
  EXPECT_EQ(sample(sampler, {0, INFINITY, 1, INFINITY}), 1);
}

TEST(Sampler, NothingToChooseFromIsAnError) {
  for (float temperature : {0.f, 1.f}) {
    Sampler sampler = make({.temperature = temperature});
    std::string error;
    EXPECT_FALSE(sampler.sample({}, error));
    std::vector<float> logits{NAN, -INFINITY};
    EXPECT_FALSE(sampler.sample(logits, error));
    EXPECT_EQ(error, "logits: expected at least one number to choose from, all "
                     "2 are NaN or -infinity");
  }
}

TEST(Sampler, OptionsOutOfRangeAreRefused) {
  std::string error;
  EXPECT_FALSE(Sampler::create({.temperature = -1}, error));
  EXPECT_EQ(error, "temperature: expected 0 to 1000000, got -1");
  EXPECT_FALSE(Sampler::create({.temperature = NAN}, error));
  EXPECT_FALSE(Sampler::create({.topK = -1}, error));
  EXPECT_FALSE(Sampler::create({.topP = 0}, error));
  EXPECT_FALSE(Sampler::create({.topP = 1.5f}, error));
  EXPECT_FALSE(Sampler::create({.topP = NAN}, error));
}

TEST(Sampler, FrequenciesFollowTheSoftmax) {
  // Probabilities 1/7, 2/7, 4/7 at temperature 1; a NaN is never taken.
  std::vector<float> logits{0, std::log(2.f), NAN, std::log(4.f)};
  Sampler sampler = make({.temperature = 1, .seed = 3});
  int counts[4] = {};
  for (int i = 0; i < 70000; ++i)
    ++counts[sample(sampler, logits)];
  EXPECT_NEAR(counts[0], 10000, 500);
  EXPECT_NEAR(counts[1], 20000, 600);
  EXPECT_EQ(counts[2], 0);
  EXPECT_NEAR(counts[3], 40000, 700);
}

static std::set<int32_t> support(SamplerOptions options,
                                 const std::vector<float> &logits) {
  Sampler sampler = make(options);
  std::set<int32_t> seen;
  for (int i = 0; i < 2000; ++i)
    seen.insert(sample(sampler, logits));
  return seen;
}

TEST(Sampler, TopKAndTopPCutTheTail) {
  using Set = std::set<int32_t>;
  std::vector<float> logits{0, 1, 1, 1, -INFINITY};
  EXPECT_EQ(support({.temperature = 1}, logits), (Set{0, 1, 2, 3}));
  // Equal logits: the lower id is kept.
  EXPECT_EQ(support({.temperature = 1, .topK = 2}, logits), (Set{1, 2}));
  EXPECT_EQ(support({.temperature = 1, .topK = 1}, logits), (Set{1}));
  EXPECT_EQ(support({.temperature = 1, .topK = 100}, logits),
            (Set{0, 1, 2, 3}));
  // Probabilities .11 .30 .30 .30: two reach .5, all are needed for .95.
  EXPECT_EQ(support({.temperature = 1, .topP = 0.5f}, logits), (Set{1, 2}));
  EXPECT_EQ(support({.temperature = 1, .topP = 0.95f}, logits),
            (Set{0, 1, 2, 3}));
  EXPECT_EQ(support({.temperature = 1, .topP = 1e-6f}, logits), (Set{1}));
  EXPECT_EQ(support({.temperature = 1, .topK = 2, .topP = 0.4f}, logits),
            (Set{1}));
  EXPECT_EQ(support({.temperature = 0.5f}, {INFINITY, 0, INFINITY}),
            (Set{0, 2}));
}

TEST(Sampler, SeedFixesTheSequence) {
  std::vector<float> logits;
  for (int i = 0; i < 50; ++i)
    logits.push_back(float(i * 7 % 50) * 0.1f);
  auto draw = [&](uint64_t seed, float topP) {
    Sampler sampler = make({.temperature = 0.8f, .topP = topP, .seed = seed});
    std::vector<int32_t> ids;
    for (int i = 0; i < 8; ++i)
      ids.push_back(sample(sampler, logits));
    return ids;
  };
  EXPECT_EQ(draw(1, 1), draw(1, 1));
  EXPECT_NE(draw(1, 1), draw(2, 1));
  // Equal on every machine; computed apart from this library with exact
  // integers and IEEE doubles.
  EXPECT_EQ(draw(1, 1), (std::vector<int32_t>{27, 35, 49, 20, 20, 35, 42, 21}));
  EXPECT_EQ(draw(1, 0.9f),
            (std::vector<int32_t>{42, 20, 26, 35, 35, 20, 41, 42}));
}
