//===- PackScalars.cpp - Packers of f32, f16 and bf16 ---------------------===//
//
// Compiled as WeightLayout.cpp says. Conversions to f32 are exact.
//
//===----------------------------------------------------------------------===//
#include "Packers.h"

using namespace gptc::format;

namespace {

/// k values moved at a time while transposing: a cache line of f32, so that
/// each line of the source is read once.
constexpr int64_t transposeK = 16;

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
          column[g] =
              load<In>(row + g * pitch + sourceFeature(w, n + j) * sizeof(In));
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
        return exists && i < k
                   ? Format::toFloat(load<In>(from + i * along * sizeof(In)))
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
int packFormat(const gptc_weight_desc &w, int32_t format, const char *source,
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

} // namespace

int gptc::format::packScalars(const gptc_weight_desc &w, const char *source,
                              char *out) {
  switch (w.source_dtype) {
  case GPTC_F32:
    return packFormat<F32>(w, GPTC_F32, source, out);
  case GPTC_F16:
    return packFormat<F16>(w, GPTC_F16, source, out);
  case GPTC_BF16:
    return packFormat<BF16>(w, GPTC_BF16, source, out);
  }
  return -1;
}
