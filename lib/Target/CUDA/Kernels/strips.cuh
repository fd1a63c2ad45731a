//===- strips.cuh - weights as a warp streams them ------------------------===//
//
// A strip is what a warp takes of a panel (weights.cuh) at once: 512
// consecutive bytes, 16 a lane, which become numbers in registers. A lane gets
// `features` output features of `taps` input features:
//
//   f32         8 input features a strip; a lane has 4 features of one
//   f16, bf16  16; 8 features of one
//   q8_0       32, a block; a lane loads 16 features of one, and two lanes
//              exchange halves: 8 features of two
//   q4_0, q4_1 64, two blocks, whose codes are 256 bytes each; 4 features of 8
//
// Codes become f32 without a conversion: the bits of a code, put into the
// mantissa of a power of two M, are the number M + code. Subtracting M is
// exact. For q8_0 and q4_0, M is small enough for M d to be exact, too, so
// fma(d, M + code, -M d) is the weight.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "weights.cuh"

namespace gptc {

/// 16 or 8 bytes that are read once, so they take no place in L1.
__device__ inline uint4 stream16(const unsigned char *from) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(from));
  return v;
}
__device__ inline uint2 stream8(const unsigned char *from) {
  uint2 v;
  asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];"
               : "=r"(v.x), "=r"(v.y)
               : "l"(from));
  return v;
}

/// a & mask | bits.
template <unsigned mask, unsigned bits>
__device__ inline float merged(unsigned a) {
  unsigned v;
  asm("lop3.b32 %0, %1, %2, %3, 0xea;"
      : "=r"(v)
      : "r"(a), "n"(mask), "n"(bits));
  return __uint_as_float(v);
}
/// 2^15 + byte i of a, its lowest bit being 1.
template <int i> __device__ inline float byte_above_32768(unsigned a) {
  return __uint_as_float(__byte_perm(a, 0x47000000u, 0x7404u | i << 4));
}

template <Format F> struct Strip {
  /// Input features of a strip.
  static constexpr int depth = F == Format::f32    ? 8
                               : !is_quantized(F)  ? 16
                               : F == Format::q8_0 ? 32
                                                   : 64;
  /// A lane's part.
  static constexpr int features = F == Format::f32 || is_along_k(F) ? 4 : 8;
  static constexpr int taps = is_along_k(F) ? 8 : F == Format::q8_0 ? 2 : 1;
  /// Lanes side by side, which have other features of the same inputs.
  static constexpr int beside = panel_width / features;

  /// Rows for which one test serves, where a row has little to do.
  static constexpr int together = features * taps >= 32  ? 1
                                  : features * taps >= 8 ? 2
                                                         : 4;
  /// Bytes of a strip, scales included.
  static constexpr int bytes = depth * (block_bytes(F) / 32);

  unsigned codes[4];
  /// f16 by pairs: d of the lane's features, then m (q4_1).
  unsigned scales[F == Format::q4_0 ? 2 : is_quantized(F) ? 4 : 1];

  /// Where the lane's codes and scales lie in a strip, and its first input.
  __device__ static int codes_at() {
    const int lane = threadIdx.x % 32;
    return is_along_k(F)
               ? lane / 16 * block_bytes(F) + scale_bytes(F) + lane % 16 * 16
               : scale_bytes(F) + lane * 16;
  }
  __device__ static int scales_at() {
    const int lane = threadIdx.x % 32;
    return is_along_k(F) ? lane / 16 * block_bytes(F) + lane % beside * 8
                         : lane % beside * 16;
  }
  __device__ static int input() {
    const int lane = threadIdx.x % 32;
    return is_along_k(F)       ? lane / 4 * 8
           : F == Format::q8_0 ? lane
                               : lane / beside;
  }

  /// The lane's part, of codes and scales of a strip.
  __device__ void fetch(const unsigned char *code, const unsigned char *scale) {
    put(codes, stream16(code));
    if constexpr (F == Format::q8_0) {
      put(scales, stream16(scale));
    } else if constexpr (is_along_k(F)) {
      uint2 d = stream8(scale);
      scales[0] = d.x, scales[1] = d.y;
      if constexpr (F == Format::q4_1) {
        uint2 m = stream8(scale + 32);
        scales[2] = m.x, scales[3] = m.y;
      }
    }
  }
  __device__ void clear() {
#pragma unroll
    for (unsigned &word : codes)
      word = 0;
#pragma unroll
    for (unsigned &word : scales)
      word = 0;
  }

  /// acc[r * features + i] += sum over the lane's inputs of weight i times x of
  /// row r < rows. x [..][pitch] lies in shared memory, with rows of zeros up
  /// to a multiple of 4 or R, and begins at the lane's first input.
  template <int R>
  __device__ void multiply(const float *x, int pitch, int rows,
                           float (&acc)[R * features]) const {
    if constexpr (is_along_k(F)) {
      float w[features][taps];
#pragma unroll
      for (int i = 0; i < features; ++i)
        nibbles(i, w[i]);
#pragma unroll
      for (int r = 0; r < R; ++r) {
        if (R > 1 && r >= rows)
          break;
        auto from = reinterpret_cast<const float4 *>(x + r * pitch);
        float4 v = from[0], u = from[1];
#pragma unroll
        for (int i = 0; i < features; ++i) {
          float sum = acc[r * features + i];
          sum = fmaf(w[i][0], v.x, sum), sum = fmaf(w[i][1], v.y, sum);
          sum = fmaf(w[i][2], v.z, sum), sum = fmaf(w[i][3], v.w, sum);
          sum = fmaf(w[i][4], u.x, sum), sum = fmaf(w[i][5], u.y, sum);
          sum = fmaf(w[i][6], u.z, sum), sum = fmaf(w[i][7], u.w, sum);
          acc[r * features + i] = sum;
        }
      }
    } else if constexpr (F == Format::q8_0) {
      // An even lane keeps the features of the first two words.
      const bool odd = threadIdx.x % 2;
      unsigned own[2] = {odd ? codes[2] : codes[0], odd ? codes[3] : codes[1]};
      unsigned next[2] = {odd ? codes[0] : codes[2], odd ? codes[1] : codes[3]};
      next[0] = __shfl_xor_sync(0xffffffffu, next[0], 1);
      next[1] = __shfl_xor_sync(0xffffffffu, next[1], 1);
      float w[features], v[features];
#pragma unroll
      for (int j = 0; j < 2; ++j)
        byte_weights(j, own[j], next[j], w, v);
      tap<R>(w, x, pitch, rows, acc);
      tap<R>(v, odd ? x - 1 : x + 1, pitch, rows, acc);
    } else {
      float w[features];
#pragma unroll
      for (int i = 0; i < features; ++i)
        if constexpr (F == Format::f32)
          w[i] = __uint_as_float(codes[i]);
        else if constexpr (F == Format::bf16)
          w[i] = __uint_as_float(i % 2 ? codes[i / 2] & 0xffff0000u
                                       : codes[i / 2] << 16);
        else
          w[i] = half(codes[i / 2], i);
      tap<R>(w, x, pitch, rows, acc);
    }
  }

private:
  template <int N> __device__ static void put(unsigned (&to)[N], uint4 v) {
    static_assert(N == 4);
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
  }
  /// f32 of the low (even i) or the high f16.
  __device__ static float half(unsigned pair, int i) {
    unsigned short low, high;
    asm("mov.b32 {%0, %1}, %2;" : "=h"(low), "=h"(high) : "r"(pair));
    return f16_to_f32(i % 2 ? high : low);
  }
  /// One input feature: its x for each row.
  template <int R>
  __device__ static void tap(const float (&w)[features], const float *x,
                             int pitch, int rows, float (&acc)[R * features]) {
#pragma unroll
    for (int r = 0; r < R; ++r) {
      if (R > 1 && r % together == 0 && r >= rows)
        break;
      float v = x[r * pitch];
#pragma unroll
      for (int i = 0; i < features; ++i)
        acc[r * features + i] = fmaf(w[i], v, acc[r * features + i]);
    }
  }
  /// q8_0: four features, from 4 j on, of two inputs.
  __device__ void byte_weights(int j, unsigned own, unsigned next,
                               float (&w)[features],
                               float (&v)[features]) const {
    // Bytes from 0 on: code + 128.
    own ^= 0x80808080u, next ^= 0x80808080u;
    const float f[4] = {byte_above_32768<0>(own), byte_above_32768<1>(own),
                        byte_above_32768<2>(own), byte_above_32768<3>(own)};
    const float g[4] = {byte_above_32768<0>(next), byte_above_32768<1>(next),
                        byte_above_32768<2>(next), byte_above_32768<3>(next)};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float d = half(scales[2 * j + i / 2], i), offset = d * -32896.0f;
      w[4 * j + i] = fmaf(d, f[i], offset);
      v[4 * j + i] = fmaf(d, g[i], offset);
    }
  }
  /// 4 bits: the eight inputs of feature i. Codes are taken where they lie, at
  /// bits 8, 12 and 16.
  __device__ void nibbles(int i, float (&w)[taps]) const {
    const unsigned low = codes[i] << 8, high = codes[i] >> 12;
    const float f[taps] = {at8(low),       at12(low),      at8(codes[i]),
                           at12(codes[i]), at16(codes[i]), at8(high),
                           at12(high),     at16(high)};
    const float d = half(scales[i / 2], i);
    const float above[3] = {32768, 2048, 128};
    const int place[taps] = {0, 1, 0, 1, 2, 0, 1, 2};
    if constexpr (F == Format::q4_0) {
      const float offset[3] = {d * -32776.0f, d * -2056.0f, d * -136.0f};
#pragma unroll
      for (int k = 0; k < taps; ++k)
        w[k] = fmaf(d, f[k], offset[place[k]]);
    } else {
      const float m = half(scales[2 + i / 2], i);
#pragma unroll
      for (int k = 0; k < taps; ++k)
        w[k] = fmaf(d, f[k] - above[place[k]], m);
    }
  }
  /// 2^15, 2^11 or 2^7 plus the four bits there.
  __device__ static float at8(unsigned a) {
    return merged<0xf00u, 0x47000000u>(a);
  }
  __device__ static float at12(unsigned a) {
    return merged<0xf000u, 0x45000000u>(a);
  }
  __device__ static float at16(unsigned a) {
    return merged<0xf0000u, 0x43000000u>(a);
  }
};

} // namespace gptc
