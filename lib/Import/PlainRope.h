//===- PlainRope.h - Rotary embeddings of config.json, unscaled -*- C++ -*-===//
#ifndef GPTC_IMPORT_PLAINROPE_H
#define GPTC_IMPORT_PLAINROPE_H

#include "gptc/Checkpoint/Json.h"

namespace gptc::importer {

/// The base of the frequencies, and the share of a head that rotates.
struct PlainRope {
  double base, share;
};

/// The keys of config.json that hold them, and what is meant without.
struct PlainRopeKeys {
  const char *base = "rope_theta", *share = "partial_rotary_factor";
  PlainRope absent{10000, 1};
};

/// From `rope_parameters` (transformers 5), else `rope_scaling` (transformers
/// 4), else `keys`. Refuses, by name, every rotary type but default, a base of
/// 1 or less and a share that is not above 0 and at most 1.
checkpoint::Expected<PlainRope>
readPlainRope(const checkpoint::json::Reader &config,
              const PlainRopeKeys &keys = {});

} // namespace gptc::importer

#endif // GPTC_IMPORT_PLAINROPE_H
