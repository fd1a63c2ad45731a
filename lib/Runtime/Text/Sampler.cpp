//===- Sampler.cpp - Choosing the next token from logits ------------------===//
#include "gptc/Runtime/Text/Sampler.h"
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>

// Fused multiply-adds round differently; the same seed must give the same
// tokens on processors with and without them.
#pragma STDC FP_CONTRACT OFF

namespace gptc::text {

uint64_t SplitMix64::next() {
  uint64_t z = state += 0x9E3779B97F4A7C15;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
  z = (z ^ z >> 27) * 0x94D049BB133111EB;
  return z ^ z >> 31;
}

double SplitMix64::uniform() { return double(next() >> 11) * 0x1p-53; }

/// 1/0!, 1/1!, ... 1/13!
static constexpr auto reciprocalFactorials = [] {
  std::array<double, 14> table{};
  double factorial = 1;
  for (size_t i = 0; i < table.size(); ++i) {
    factorial *= i == 0 ? 1 : double(i);
    table[i] = 1 / factorial;
  }
  return table;
}();

/// exp(x) for x <= 0 from additions and multiplications alone: the C library's
/// differs between machines in the last bit. x = n ln 2 + r, |r| <= ln 2 / 2,
/// Taylor series for exp(r) to r^13 / 13! (error below 1e-16).
static double expOfNegative(double x) {
  if (!(x > -700)) // below e^-700 a weight is as good as none
    return 0;
  double n = std::floor(x * 1.4426950408889634 + 0.5);
  // ln 2 in two parts, so that n * high is exact.
  double r = x - n * 0x1.62e42feep-1 - n * 0x1.a39ef35793c76p-33;
  double sum = 0;
  for (size_t i = reciprocalFactorials.size(); i-- > 0;)
    sum = sum * r + reciprocalFactorials[i];
  return std::ldexp(sum, int(n));
}

std::optional<int32_t> greedy(std::span<const float> logits) {
  std::optional<int32_t> best;
  float largest = -INFINITY;
  for (size_t id = 0; id < logits.size(); ++id)
    if (logits[id] > largest) { // false for NaN
      largest = logits[id];
      best = int32_t(id);
    }
  return best;
}

std::optional<Sampler> Sampler::create(const SamplerOptions &options,
                                       std::string &error) {
  // Written so that NaN fails.
  if (!(options.temperature >= 0 && options.temperature <= 1e6f))
    error = fmt::format("temperature: expected 0 to 1000000, got {}",
                        options.temperature);
  else if (options.topK < 0)
    error =
        fmt::format("top-k: expected 0 (all) or more, got {}", options.topK);
  else if (!(options.topP > 0 && options.topP <= 1))
    error = fmt::format("top-p: expected more than 0 and at most 1, got {}",
                        options.topP);
  else
    return Sampler(options);
  return std::nullopt;
}

int32_t Sampler::draw(std::span<const Candidate> kept) {
  double total = 0;
  for (const Candidate &candidate : kept)
    total += candidate.weight;
  double left = random.uniform() * total;
  int32_t chosen = kept.front().id;
  for (const Candidate &candidate : kept) {
    if (candidate.weight == 0)
      continue;
    // The last one with weight stays chosen if rounding leaves a remainder.
    chosen = candidate.id;
    if (left < candidate.weight)
      break;
    left -= candidate.weight;
  }
  return chosen;
}

std::optional<int32_t> Sampler::sample(std::span<const float> logits,
                                       std::string &error) {
  std::optional<int32_t> best = greedy(logits);
  if (!best) {
    error = fmt::format("logits: expected at least one number to choose from, "
                        "all {} are NaN or -infinity",
                        logits.size());
    return std::nullopt;
  }
  if (options.temperature == 0)
    return best;

  float largest = logits[*best];
  candidates.clear();
  for (size_t id = 0; id < logits.size(); ++id) {
    float logit = logits[id];
    if (!(logit > -INFINITY))
      continue;
    candidates.push_back({logit, int32_t(id), 0});
  }

  auto after = [](const Candidate &a, const Candidate &b) {
    return a.logit != b.logit ? a.logit < b.logit : a.id > b.id;
  };
  auto before = [&](const Candidate &a, const Candidate &b) {
    return after(b, a);
  };
  size_t count = candidates.size();
  if (options.topK > 0 && size_t(options.topK) < count) {
    count = size_t(options.topK);
    std::nth_element(candidates.begin(), candidates.begin() + count,
                     candidates.end(), before);
    candidates.resize(count);
    std::sort(candidates.begin(), candidates.end(), before);
  }
  // With an infinite logit only infinite ones count.
  for (Candidate &candidate : candidates)
    candidate.weight = candidate.logit == largest
                           ? 1
                           : expOfNegative((double(candidate.logit) - largest) /
                                           options.temperature);
  if (options.topP >= 1)
    return draw(candidates);

  // Largest first out of a heap, until the kept ones have probability p: far
  // fewer steps than sorting a whole vocabulary.
  double total = 0;
  for (const Candidate &candidate : candidates)
    total += candidate.weight;
  double wanted = options.topP * total, reached = 0;
  std::make_heap(candidates.begin(), candidates.end(), after);
  auto heapEnd = candidates.end();
  while (heapEnd != candidates.begin() && reached < wanted) {
    std::pop_heap(candidates.begin(), heapEnd, after);
    reached += (--heapEnd)->weight;
  }
  std::reverse(heapEnd, candidates.end());
  return draw({heapEnd, candidates.end()});
}

} // namespace gptc::text
