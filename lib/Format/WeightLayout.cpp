//===- WeightLayout.cpp - Packers of the weight layouts -------------------===//
//
// The layouts are described in gptc/Format/WeightLayout.h. This file is
// compiled twice: into the compiler, and into the runtime of every package,
// which packs the weights that a host hands over. So: no allocation, no libm,
// no libstdc++, no shared state, and only loops that a vectoriser understands.
//
// N output features, K input features, NR features in a panel. Source
// pointers may be unaligned: elements are loaded through memcpy.
//
// Conversions to f32 are exact for every source format but q4_1, whose
// d * code + m is rounded once (d * code is exact: 11 + 4 bits).
//
// Refuses (-1): block formats stored [K, N], a K that is no multiple of the
// block, a packed format that the header does not allow, i32, a shifted panel.
//
// Source of the block formats: ggml's Q8_0, Q4_0 and Q4_1.
//
//===----------------------------------------------------------------------===//

#include "gptc/Format/WeightLayout.h"
#include "gptc/Runtime/gptc.h"
#include <string.h>

namespace {

constexpr int64_t blockK = 32;
/// k values moved at a time while transposing: a cache line of f32, so that
/// each line of the source is read once.
constexpr int64_t transposeK = 16;

template <typename T> T load(const void *from) {
  T value;
  memcpy(&value, from, sizeof(T));
  return value;
}

float bitsToFloat(uint32_t bits) { return load<float>(&bits); }

float halfToFloat(uint16_t half) {
  uint32_t magnitude = half & 0x7fffu;
  uint32_t exponent = magnitude >> 10;
  // Rebias 15 to 127; infinities and NaNs once more, to the top exponent.
  uint32_t normal = (magnitude << 13) + (112u << 23);
  normal += exponent == 31 ? 112u << 23 : 0;
  float subnormal =
      static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f;
  uint32_t bits = exponent == 0 ? load<uint32_t>(&subnormal) : normal;
  return bitsToFloat(bits | (static_cast<uint32_t>(half & 0x8000u) << 16));
}

/// One element of a scalar format: how it is stored, how it reads as f32.
struct F32 {
  using Stored = float;
  static float toFloat(float x) { return x; }
};
struct F16 {
  using Stored = uint16_t;
  static float toFloat(uint16_t x) { return halfToFloat(x); }
};
struct BF16 {
  using Stored = uint16_t;
  static float toFloat(uint16_t x) {
    return bitsToFloat(static_cast<uint32_t>(x) << 16);
  }
};

/// To nearest, ties to even; a NaN stays one.
uint32_t roundToBF16(float x) {
  uint32_t bits = load<uint32_t>(&x);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return bits >> 16 | 0x40u;
  return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}

uint32_t pairOfBF16(float even, float odd) {
  return roundToBF16(even) | roundToBF16(odd) << 16;
}

// How `group` elements, neighbours in k, become one of a panel.

/// Keeps the stored bits.
template <typename Format> struct Keep {
  using In = typename Format::Stored;
  using Out = typename Format::Stored;
  static constexpr int64_t group = 1;
  static Out convert(const In *x) { return *x; }
};
/// Widens to f32.
template <typename Format> struct Widen {
  using In = typename Format::Stored;
  using Out = float;
  static constexpr int64_t group = 1;
  static Out convert(const In *x) { return Format::toFloat(*x); }
};
/// Rounds to a pair of bf16.
template <typename Format> struct Pair {
  using In = typename Format::Stored;
  using Out = uint32_t;
  static constexpr int64_t group = 2;
  static Out convert(const In *x) {
    return pairOfBF16(Format::toFloat(x[0]), Format::toFloat(x[1]));
  }
};

/// The feature of the source that is packed as feature i.
int64_t sourceFeature(const gptc_weight_desc &w, int64_t i) {
  return w.n0 + (w.take ? i / w.take * w.of + i % w.take : i);
}

int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

/// Panels from rows of output features: source [N, K].
template <typename Convert>
void packTransposed(const gptc_weight_desc &w, const char *source,
                    typename Convert::Out *out) {
  using In = typename Convert::In;
  using Out = typename Convert::Out;
  constexpr int64_t group = Convert::group;
  const int64_t nr = w.panel, k = w.k, rows = (k + group - 1) / group;
  for (int64_t n = 0; n < w.n; n += nr, out += nr * rows) {
    int64_t features = smaller(nr, w.n - n);
    if (features < nr)
      memset(out, 0, sizeof(Out) * nr * rows);
    auto row = [&](int64_t j) {
      return source + sourceFeature(w, n + j) * k * sizeof(In);
    };
    int64_t k0 = 0;
    for (; k0 + transposeK <= k; k0 += transposeK)
      for (int64_t j = 0; j < features; ++j) {
        In line[transposeK];
        memcpy(line, row(j) + k0 * sizeof(In), sizeof(line));
        Out *to = out + k0 / group * nr + j;
        for (int64_t i = 0; i < transposeK / group; ++i)
          to[i * nr] = Convert::convert(line + i * group);
      }
    for (; k0 < k; k0 += group)
      for (int64_t j = 0; j < features; ++j) {
        In few[group] = {};
        memcpy(few, row(j) + k0 * sizeof(In),
               smaller(group, k - k0) * sizeof(In));
        out[k0 / group * nr + j] = Convert::convert(few);
      }
  }
}

/// Panels from rows of input features: source [K, N of the whole tensor].
template <typename Convert>
void packStraight(const gptc_weight_desc &w, const char *source,
                  typename Convert::Out *out) {
  using In = typename Convert::In;
  constexpr int64_t group = Convert::group;
  const int64_t nr = w.panel, k = w.k, pitch = w.source_cols * sizeof(In);
  for (int64_t n = 0; n < w.n; n += nr) {
    int64_t features = smaller(nr, w.n - n);
    const char *row = source;
    for (int64_t i = 0; i < k; i += group, row += group * pitch) {
      int64_t count = smaller(group, k - i);
      for (int64_t j = 0; j < features; ++j) {
        In column[group] = {};
        for (int64_t g = 0; g < count; ++g)
          column[g] = load<In>(row + g * pitch +
                               sourceFeature(w, n + j) * sizeof(In));
        out[j] = Convert::convert(column);
      }
      for (int64_t j = features; j < nr; ++j)
        out[j] = 0;
      out += nr;
    }
  }
}

/// Codes with a scale for each feature, from rows of either kind. Numbers that
/// are not finite leave a scale that is not.
template <typename Format>
void packChannels(const gptc_weight_desc &w, const char *source, char *out) {
  using In = typename Format::Stored;
  const int64_t nr = w.panel, k = w.k, quads = (k + 3) / 4;
  const int64_t along = w.in_out ? w.source_cols : 1;
  for (int64_t n = 0; n < w.n; n += nr, out += quads * nr * 4 + nr * 4)
    for (int64_t j = 0; j < nr; ++j) {
      const bool exists = n + j < w.n;
      const int64_t feature = exists ? sourceFeature(w, n + j) : 0;
      const char *from =
          source + (w.in_out ? feature : feature * k) * sizeof(In);
      auto value = [&](int64_t i) {
        return exists && i < k ? Format::toFloat(
                                     load<In>(from + i * along * sizeof(In)))
                               : 0.0f;
      };
      float largest = 0, finite = 0; // finite: 0, or NaN
      for (int64_t i = 0; i < k; ++i) {
        float x = value(i), magnitude = x < 0 ? -x : x;
        largest = magnitude > largest ? magnitude : largest;
        finite += x * 0.0f;
      }
      float scale = largest / 127 + finite;
      float inverse = largest > 0 ? 127 / largest : 0;
      for (int64_t i = 0; i < quads * 4; ++i) {
        float code = value(i) * inverse;
        code = code > -127.0f ? (code < 127.0f ? code : 127.0f) : -127.0f;
        // To nearest, ties to even, by the rounding of the sum.
        code = (code + 0x1.8p23f) - 0x1.8p23f;
        out[(i / 4 * nr + j) * 4 + i % 4] =
            static_cast<char>(static_cast<int32_t>(code) + 128);
      }
      memcpy(out + quads * nr * 4 + j * 4, &scale, 4);
    }
}

template <typename Convert>
void packVector(const gptc_weight_desc &w, const char *source, float *out) {
  using In = typename Convert::In;
  for (int64_t j = 0; j < w.n; ++j) {
    In x = load<In>(source + sourceFeature(w, j) * sizeof(In));
    out[j] = Convert::convert(&x);
  }
}

template <typename Format>
int packScalars(const gptc_weight_desc &w, int32_t format, const char *source,
                char *out) {
  if (w.layout == GPTC_LAYOUT_VECTOR) {
    packVector<Widen<Format>>(w, source, reinterpret_cast<float *>(out));
    return 0;
  }
  auto pack = [&]<typename Convert>(Convert) {
    auto *to = reinterpret_cast<typename Convert::Out *>(out);
    w.in_out ? packStraight<Convert>(w, source, to)
             : packTransposed<Convert>(w, source, to);
    return 0;
  };
  if (w.packed_dtype == format)
    return pack(Keep<Format>());
  if (w.packed_dtype == GPTC_F32)
    return pack(Widen<Format>());
  if (w.packed_dtype == GPTC_PACKED_BF16X2)
    return pack(Pair<Format>());
  if (w.packed_dtype == GPTC_PACKED_I8X4) {
    packChannels<Format>(w, source, out);
    return 0;
  }
  return -1;
}

/// A block of 32 values of one feature, taken apart.
struct Block {
  uint16_t scale, minimum;
  uint8_t codes[blockK]; ///< int8 for q8_0
};

int64_t blockBytes(int32_t dtype) {
  return dtype == GPTC_Q8_0 ? 34 : dtype == GPTC_Q4_0 ? 18 : 20;
}

void readBlock(int32_t dtype, const char *from, Block &block) {
  block.scale = load<uint16_t>(from);
  block.minimum = dtype == GPTC_Q4_1 ? load<uint16_t>(from + 2) : 0;
  if (dtype == GPTC_Q8_0) {
    memcpy(block.codes, from + 2, blockK);
    return;
  }
  const char *nibbles = from + (dtype == GPTC_Q4_1 ? 4 : 2);
  for (int64_t i = 0; i < blockK / 2; ++i) {
    uint8_t byte = static_cast<uint8_t>(nibbles[i]);
    block.codes[i] = byte & 15;
    block.codes[i + blockK / 2] = byte >> 4;
  }
}

void dequantizeBlock(int32_t dtype, const Block &block, float *out,
                     int64_t stride) {
  float d = halfToFloat(block.scale), m = halfToFloat(block.minimum);
  for (int64_t i = 0; i < blockK; ++i) {
    int32_t code = block.codes[i];
    if (dtype == GPTC_Q8_0)
      out[i * stride] = d * static_cast<float>(static_cast<int8_t>(code));
    else if (dtype == GPTC_Q4_0)
      out[i * stride] = d * static_cast<float>(code - 8);
    else
      out[i * stride] = d * static_cast<float>(code) + m;
  }
}

void storePairs(int32_t dtype, const Block &block, uint32_t *out,
                int64_t stride) {
  float values[blockK];
  dequantizeBlock(dtype, block, values, 1);
  for (int64_t i = 0; i < blockK / 2; ++i)
    out[i * stride] = pairOfBF16(values[2 * i], values[2 * i + 1]);
}

/// Stores feature j of a block of a panel of nr features; see the header.
void storeBlock(int32_t dtype, const Block &block, char *panel, int64_t nr,
                int64_t j) {
  memcpy(panel + j * 2, &block.scale, 2);
  panel += nr * 2;
  if (dtype == GPTC_Q4_1) {
    memcpy(panel + j * 2, &block.minimum, 2);
    panel += nr * 2;
  }
  if (dtype == GPTC_PACKED_Q8_0X4) {
    for (int64_t i = 0; i < blockK; ++i)
      panel[(i / 4 * nr + j) * 4 + i % 4] =
          static_cast<char>(block.codes[i] ^ 0x80);
    return;
  }
  if (dtype == GPTC_Q8_0) {
    for (int64_t i = 0; i < blockK; ++i)
      panel[i * nr + j] = static_cast<char>(block.codes[i]);
    return;
  }
  for (int64_t g = 0; g < 4; ++g) {
    uint32_t word = 0;
    for (int64_t s = 0; s < 8; ++s)
      word |= static_cast<uint32_t>(block.codes[8 * g + s]) << (4 * s);
    memcpy(panel + (g * nr + j) * 4, &word, 4);
  }
}

int packBlocks(const gptc_weight_desc &w, const char *source, char *out) {
  const int32_t dtype = w.source_dtype;
  const bool vector = w.layout == GPTC_LAYOUT_VECTOR;
  const int64_t bytes = blockBytes(dtype);
  if (w.in_out || (!vector && w.k % blockK) ||
      (vector && w.source_cols % blockK))
    return -1;
  if (vector) {
    float values[blockK];
    Block block;
    int64_t held = -1; // the block in `values`
    for (int64_t j = 0; j < w.n; ++j) {
      int64_t at = sourceFeature(w, j);
      if (at / blockK != held) {
        held = at / blockK;
        readBlock(dtype, source + held * bytes, block);
        dequantizeBlock(dtype, block, values, 1);
      }
      reinterpret_cast<float *>(out)[j] = values[at % blockK];
    }
    return 0;
  }
  const bool keep =
      w.packed_dtype == dtype ||
      (dtype == GPTC_Q8_0 && w.packed_dtype == GPTC_PACKED_Q8_0X4);
  const bool pairs = w.packed_dtype == GPTC_PACKED_BF16X2;
  if (!keep && !pairs && w.packed_dtype != GPTC_F32)
    return -1;
  const int64_t nr = w.panel, blocks = w.k / blockK;
  const uint64_t packedBlock = gptc_panel_bytes(w.packed_dtype, nr, blockK);
  for (int64_t n = 0; n < w.n; n += nr) {
    int64_t features = smaller(nr, w.n - n);
    if (features < nr)
      memset(out, 0, packedBlock * blocks);
    for (int64_t b = 0; b < blocks; ++b, out += packedBlock)
      for (int64_t j = 0; j < features; ++j) {
        Block block;
        readBlock(dtype,
                  source + (sourceFeature(w, n + j) * blocks + b) * bytes,
                  block);
        if (keep)
          storeBlock(w.packed_dtype, block, out, nr, j);
        else if (pairs)
          storePairs(dtype, block, reinterpret_cast<uint32_t *>(out) + j, nr);
        else
          dequantizeBlock(dtype, block, reinterpret_cast<float *>(out) + j, nr);
      }
  }
  return 0;
}

} // namespace

extern "C" uint64_t gptc_panel_bytes(int32_t dtype, int64_t nr, int64_t k) {
  if (dtype == GPTC_PACKED_BF16X2)
    return static_cast<uint64_t>(nr) * static_cast<uint64_t>((k + 1) / 2) * 4;
  if (dtype == GPTC_PACKED_I8X4)
    return static_cast<uint64_t>(nr) * static_cast<uint64_t>((k + 3) / 4 * 4 + 4);
  return gptc_source_bytes(dtype == GPTC_PACKED_Q8_0X4 ? GPTC_Q8_0 : dtype, nr,
                           k);
}

extern "C" uint64_t gptc_source_bytes(int32_t dtype, int64_t rows,
                                      int64_t cols) {
  uint64_t count = static_cast<uint64_t>(rows) * static_cast<uint64_t>(cols);
  switch (dtype) {
  case GPTC_F32:
  case GPTC_I32:
    return count * 4;
  case GPTC_F16:
  case GPTC_BF16:
    return count * 2;
  case GPTC_Q8_0:
  case GPTC_Q4_0:
  case GPTC_Q4_1:
    return cols % blockK ? 0 : count / blockK * blockBytes(dtype);
  }
  return 0;
}

extern "C" uint64_t gptc_packed_bytes(const gptc_weight_desc *w) {
  if (w->layout == GPTC_LAYOUT_VECTOR)
    return (static_cast<uint64_t>(w->n) + 63) / 64 * 64 * sizeof(float);
  uint64_t panels = (w->n + w->panel - 1) / w->panel;
  return panels * gptc_panel_bytes(w->packed_dtype, w->panel, w->k);
}

static int packStored(const gptc_weight_desc &w, const char *source,
                      char *out) {
  switch (w.source_dtype) {
  case GPTC_F32:
    return packScalars<F32>(w, GPTC_F32, source, out);
  case GPTC_F16:
    return packScalars<F16>(w, GPTC_F16, source, out);
  case GPTC_BF16:
    return packScalars<BF16>(w, GPTC_BF16, source, out);
  case GPTC_Q8_0:
  case GPTC_Q4_0:
  case GPTC_Q4_1:
    return packBlocks(w, source, out);
  }
  return -1;
}

extern "C" int gptc_pack_weight(const gptc_weight_desc *w, const void *source,
                                void *out) {
  const bool vector = w->layout == GPTC_LAYOUT_VECTOR;
  if (w->shift != 0 && !vector)
    return -1;
  if (vector)
    memset(out, 0, gptc_packed_bytes(w));
  int status = packStored(*w, static_cast<const char *>(source),
                          static_cast<char *>(out));
  if (w->shift != 0)
    for (int64_t i = 0; i < w->n; ++i)
      static_cast<float *>(out)[i] += static_cast<float>(w->shift);
  return status;
}
