//===- weights.cuh - packed weights and their values ----------------------===//
//
// Panels of 16 output features as Format/WeightLayout.h lays them out. They are
// read in pieces of eight weights, one a lane: 32 pieces are 16 input features
// of a panel. In formats of rows a piece is eight features of one row, in the
// 4-bit formats eight rows of one feature (one word). A piece is fetched as it
// is stored and becomes numbers later, so that the fetch of one tile can run
// while another is multiplied.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "common.cuh"

namespace gptc {

enum class Format { f32, f16, bf16, q8_0, q4_0, q4_1 };

/// Output features of a panel.
inline constexpr int panel_width = 16;
/// Input features of 32 pieces.
inline constexpr int piece_rows = 16;

__host__ __device__ constexpr bool is_quantized(Format f) {
  return f >= Format::q8_0;
}
/// Whether a piece lies along the input features.
__host__ __device__ constexpr bool is_along_k(Format f) {
  return f >= Format::q4_0;
}

/// Bytes of 32 input features of a panel, before its scales and with them.
__host__ __device__ constexpr int scale_bytes(Format f) {
  return f == Format::q4_1 ? 64 : is_quantized(f) ? 32 : 0;
}
__host__ __device__ constexpr int block_bytes(Format f) {
  return f == Format::f32    ? 2048
         : !is_quantized(f)  ? 1024
         : f == Format::q8_0 ? 512 + scale_bytes(f)
                             : 256 + scale_bytes(f);
}
/// Bytes of a panel. K is a multiple of 32 in quantised formats.
__host__ __device__ constexpr long long panel_bytes(Format f, long long k) {
  return is_quantized(f) ? k / 32 * block_bytes(f) : k * (block_bytes(f) / 32);
}

/// The place of weight i of piece p: row and feature from the first of the 16
/// rows.
template <Format F> __device__ inline int piece_row(int p, int i) {
  return is_along_k(F) ? p / 16 * 8 + i : p / 2;
}
template <Format F> __device__ inline int piece_feature(int p, int i) {
  return is_along_k(F) ? p % 16 : p % 2 * 8 + i;
}

/// Eight weights as they are stored.
template <Format F> struct Piece {
  static constexpr int words = F == Format::f32    ? 8
                               : F == Format::q8_0 ? 2
                               : is_along_k(F)     ? 1
                                                   : 4;
  unsigned data[words];
  /// q8_0: eight f16; q4_0: one; q4_1: one and the minimum above it.
  unsigned scale[F == Format::q8_0 ? 4 : 1];

  __device__ void clear() {
#pragma unroll
    for (unsigned &word : data)
      word = 0;
#pragma unroll
    for (unsigned &word : scale)
      word = 0;
  }

  /// Piece p of the 16 rows from k0, a multiple of 16; zeros past K.
  __device__ void fetch(const unsigned char *panel, int k0, int p, int K) {
    int k = k0 + piece_row<F>(p, 0);
    if (k >= K)
      return clear();
    if constexpr (!is_quantized(F)) {
      auto from = reinterpret_cast<const uint4 *>(
          panel + (long long)k * (block_bytes(F) / 32) + p % 2 * (words * 4));
#pragma unroll
      for (int i = 0; i < words / 4; ++i) {
        uint4 v = __ldg(from + i);
        data[4 * i] = v.x, data[4 * i + 1] = v.y;
        data[4 * i + 2] = v.z, data[4 * i + 3] = v.w;
      }
      scale[0] = 0;
    } else {
      const unsigned char *block = panel + (long long)(k / 32) * block_bytes(F);
      const unsigned char *codes = block + scale_bytes(F);
      if constexpr (F == Format::q8_0) {
        uint2 v = __ldg(
            reinterpret_cast<const uint2 *>(codes + k % 32 * 16 + p % 2 * 8));
        uint4 d = __ldg(reinterpret_cast<const uint4 *>(block + p % 2 * 16));
        data[0] = v.x, data[1] = v.y;
        scale[0] = d.x, scale[1] = d.y, scale[2] = d.z, scale[3] = d.w;
      } else {
        int n = p % 16;
        data[0] = __ldg(reinterpret_cast<const unsigned *>(codes) +
                        k % 32 / 8 * 16 + n);
        auto scales = reinterpret_cast<const unsigned short *>(block);
        scale[0] = __ldg(scales + n);
        if constexpr (F == Format::q4_1)
          scale[0] |= unsigned(__ldg(scales + 16 + n)) << 16;
      }
    }
  }

  /// The eight numbers.
  __device__ void values(float (&w)[8]) const {
    if constexpr (F == Format::f32) {
#pragma unroll
      for (int i = 0; i < 8; ++i)
        w[i] = __uint_as_float(data[i]);
    } else if constexpr (!is_quantized(F)) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        unsigned short bits = data[i / 2] >> (i % 2 * 16);
        w[i] = F == Format::f16 ? f16_to_f32(bits) : bf16_to_f32(bits);
      }
    } else if constexpr (F == Format::q8_0) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        float d = f16_to_f32(scale[i / 2] >> (i % 2 * 16));
        w[i] = d * float((signed char)(data[i / 4] >> (i % 4 * 8)));
      }
    } else {
      float d = f16_to_f32(scale[0] & 0xffff);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        int code = data[0] >> (4 * i) & 15;
        w[i] = F == Format::q4_0 ? d * float(code - 8)
                                 : d * float(code) + f16_to_f32(scale[0] >> 16);
      }
    }
  }
};

/// One weight: feature n of a matrix of K input features.
template <Format F>
__device__ float load_weight(const unsigned char *matrix, long long n, int k,
                             int K) {
  const unsigned char *panel = matrix + n / 16 * panel_bytes(F, K);
  int k0 = k / 16 * 16, feature = n % 16;
  int p =
      is_along_k(F) ? (k - k0) / 8 * 16 + feature : (k - k0) * 2 + feature / 8;
  Piece<F> piece;
  float w[8];
  piece.fetch(panel, k0, p, K);
  piece.values(w);
  int i = is_along_k(F) ? k % 8 : feature % 8;
  float v = w[0];
#pragma unroll
  for (int j = 1; j < 8; ++j)
    v = i == j ? w[j] : v;
  return v;
}

} // namespace gptc
