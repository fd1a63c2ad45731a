//===- ModelInfo.h - What every family knows of a model ---------*- C++ -*-===//
#ifndef GPTC_IMPORT_MODELINFO_H
#define GPTC_IMPORT_MODELINFO_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace gptc::importer {

struct ModelInfo {
  std::string architecture;
  int64_t layers = 0;
  /// Longest sequence in tokens, and rows of the token embedding.
  int64_t context = 0, vocab = 0;
  /// Token ids; nothing where the checkpoint names none.
  std::optional<int64_t> bos, eos;
  std::vector<int64_t> extraEnds;
  /// Lower case remarks for the user.
  std::vector<std::string> notes;
};

/// Of a layer with grouped-query attention, in channels and heads.
struct LayerSizes {
  int64_t width = 0, heads = 0, kvHeads = 0, headSize = 0;
  /// Width inside the feed-forward block.
  int64_t inner = 0;
};

/// The elementwise function of a feed-forward block.
enum class Activation { GeluTanh, GeluErf, GeluQuick, Silu };

} // namespace gptc::importer

#endif // GPTC_IMPORT_MODELINFO_H
