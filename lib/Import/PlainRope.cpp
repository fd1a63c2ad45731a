//===- PlainRope.cpp - Rotary embeddings of config.json, unscaled ---------===//

#include "PlainRope.h"
#include "Fields.h"

using namespace gptc;
using namespace gptc::importer;
using checkpoint::Expected;
using checkpoint::json::Reader;

/// Reads `baseKey` and `shareKey` over what `rope` holds.
static Expected<void> readNumbers(const Reader &from, const char *baseKey,
                                  const char *shareKey, PlainRope &rope) {
  Fields fields(from);
  rope.base = fields.ropeBaseOr(baseKey, rope.base);
  rope.share = fields.realOr(shareKey, rope.share);
  fields.require(fields.failed() || (rope.share > 0 && rope.share <= 1),
                 shareKey,
                 fmt::format("expected a share above 0 and at most 1, got {}",
                             rope.share));
  if (fields.failed())
    return fields.error();
  return {};
}

Expected<PlainRope> importer::readPlainRope(const Reader &config,
                                            const PlainRopeKeys &keys) {
  PlainRope result = keys.absent;
  if (auto read = readNumbers(config, keys.base, keys.share, result); !read)
    return read.error();
  for (const char *key : {"rope_parameters", "rope_scaling"}) {
    if (!config.has(key))
      continue;
    auto rope = config.child(key);
    if (!rope)
      return rope.error();
    Fields fields(*rope);
    // Written `type` before transformers 4.43.
    std::string type =
        fields.stringOr("rope_type", fields.stringOr("type", "default"));
    if (fields.failed())
      return fields.error();
    if (type != "default")
      return config.error(
          key, fmt::format("rotary type {} is not supported: expected default",
                           checkpoint::quote(type)));
    if (auto read =
            readNumbers(*rope, "rope_theta", "partial_rotary_factor", result);
        !read)
      return read.error();
    break;
  }
  return result;
}
