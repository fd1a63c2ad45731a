//===- Sampler.h - Choosing the next token from logits --------------------===//
//
// Greedy, or temperature with top-k and top-p (nucleus sampling, Holtzman et
// al., arXiv:1904.09751). Order: temperature, top-k, top-p, draw. Candidates
// are ordered by logit, equal logits by id, and both the generator and exp are
// the library's own in plain double arithmetic, so that a seed gives the same
// tokens on every machine.
//
// NaN logits are never chosen. Refuses options outside their range and logits
// with no candidate (empty, or all NaN or -infinity).
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_RUNTIME_TEXT_SAMPLER_H
#define GPTC_RUNTIME_TEXT_SAMPLER_H

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gptc::text {

struct SamplerOptions {
  float temperature = 0; ///< 0: greedy, the lowest id among equal logits
  int32_t topK = 0;      ///< keep the k largest logits; 0: all
  float topP = 1;        ///< keep the fewest with probability >= p; 1: all
  uint64_t seed = 0;
};

/// SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): 64 bits of state.
class SplitMix64 {
public:
  explicit SplitMix64(uint64_t seed) : state(seed) {}
  uint64_t next();
  /// Uniform in [0, 1), a multiple of 2^-53.
  double uniform();

private:
  uint64_t state;
};

/// One per sequence; not thread-safe.
class Sampler {
public:
  static std::optional<Sampler> create(const SamplerOptions &options,
                                       std::string &error);

  /// The chosen index into `logits` [V], or empty with a message.
  std::optional<int32_t> sample(std::span<const float> logits,
                                std::string &error);

private:
  explicit Sampler(const SamplerOptions &options)
      : options(options), random(options.seed) {}

  struct Candidate {
    float logit;
    int32_t id;
    double weight; ///< exp((logit - largest) / temperature)
  };
  int32_t draw(std::span<const Candidate> kept);

  SamplerOptions options;
  SplitMix64 random;
  std::vector<Candidate> candidates; ///< kept between calls for its memory
};

/// The id of the largest logit, the lowest among equals; empty when there is
/// no candidate (see above).
std::optional<int32_t> greedy(std::span<const float> logits);

} // namespace gptc::text

#endif // GPTC_RUNTIME_TEXT_SAMPLER_H
