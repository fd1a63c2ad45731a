//===- Rope.h - Rotary embeddings of config.json ----------------*- C++ -*-===//
//
// Keys in the style of transformers 4 (rope_theta, partial_rotary_factor,
// rope_scaling) or 5 (all of them in rope_parameters).
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_IMPORT_ROPE_H
#define GPTC_IMPORT_ROPE_H

#include "gptc/Checkpoint/Json.h"
#include "gptc/Dialect/Gpt/Gpt.h"
#include <optional>
#include <string_view>
#include <vector>

namespace gptc::importer {

struct Rope {
  double base = 10000;
  /// half in Hugging Face's row order of Q and K, adjacent in llama.cpp's.
  gpt::RopePairs pairs = gpt::RopePairs::Half;
  /// Channels of a head, and how many of them, from the first on, rotate.
  int64_t headSize = 0, rotary = 0;
  struct Llama3 {
    double factor, low, high;
    int64_t original;
  };
  std::optional<Llama3> llama3;
  /// Divisors of the frequencies: none, one for all, or one for each.
  std::vector<double> factors;

  gpt::RopeAttr attribute(mlir::MLIRContext &context) const;
};

/// A family's keys of the base and of the share of a head that rotates, where
/// they stand in config.json itself, and its defaults.
struct RopeKeys {
  const char *base = "rope_theta", *partial = "partial_rotary_factor";
  double absentBase = 10000, absentPartial = 1;
};

/// Refuses, by name, rotary types other than default, linear and llama3, every
/// parameter of which is required, and parameters that differ from layer to
/// layer.
checkpoint::Expected<Rope> readRope(const checkpoint::json::Reader &config,
                                    int64_t headSize,
                                    const RopeKeys &keys = {});

} // namespace gptc::importer

#endif // GPTC_IMPORT_ROPE_H
