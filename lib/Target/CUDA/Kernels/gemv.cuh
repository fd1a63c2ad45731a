//===- gemv.cuh - few rows straight from the stored weights ---------------===//
//
// A block computes up to R rows times BN features of every lane's weight. Its
// warps share K: warp w takes the chunks w, w + Warps, ... of 16 input
// features, each lane one piece of the chunk. Partial sums are added over the
// lanes by a butterfly and over the warps in order, the same for every R, so
// that a row has the same bits in every kernel of this class. Sections are
// those of gemm_ffma.cuh.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "weights.cuh"

namespace gptc {

template <int R_, int BN_, int Lanes> struct GemvTile {
  static constexpr int threads = 256, warps = threads / 32, R = R_, BN = BN_;
  static constexpr int width = Lanes * BN;
  static constexpr int partial = warps * R * panel_width; // elements
  static constexpr int shared = 4 * (2 * partial + R * width);
};

/// The warp's part of one panel times R rows, at partial [R][16].
template <class T, Format F, int K>
__device__ void gemv_panel(const unsigned char *panel, const float *x, int rows,
                           float *partial) {
  constexpr int chunks = (K + piece_rows - 1) / piece_rows;
  constexpr int sums = is_along_k(F) ? 1 : 8;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  float acc[T::R][sums] = {};
#pragma unroll 4
  for (int chunk = warp; chunk < chunks; chunk += T::warps) {
    int k0 = chunk * piece_rows, k = k0 + piece_row<F>(lane, 0);
    Piece<F> piece;
    float w[8];
    piece.fetch(panel, k0, lane, K);
    piece.values(w);
#pragma unroll
    for (int r = 0; r < T::R; ++r) {
      if (r >= rows)
        break;
      const float *row = x + (long long)r * K + k;
      if constexpr (is_along_k(F)) {
        auto from = reinterpret_cast<const float4 *>(row);
        float4 v = __ldg(from), u = __ldg(from + 1);
        float sum = acc[r][0];
        sum = fmaf(w[0], v.x, sum), sum = fmaf(w[1], v.y, sum);
        sum = fmaf(w[2], v.z, sum), sum = fmaf(w[3], v.w, sum);
        sum = fmaf(w[4], u.x, sum), sum = fmaf(w[5], u.y, sum);
        sum = fmaf(w[6], u.z, sum), sum = fmaf(w[7], u.w, sum);
        acc[r][0] = sum;
      } else {
        float v = K % piece_rows == 0 || k < K ? __ldg(row) : 0.0f;
#pragma unroll
        for (int i = 0; i < 8; ++i)
          acc[r][i] = fmaf(w[i], v, acc[r][i]);
      }
    }
  }
#pragma unroll
  for (int r = 0; r < T::R; ++r)
#pragma unroll
    for (int i = 0; i < sums; ++i) {
      float v = acc[r][i];
#pragma unroll
      for (int distance = 16; distance >= (is_along_k(F) ? 16 : 2);
           distance /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, distance);
      if (lane < 16 && (is_along_k(F) || lane < 2))
        partial[r * panel_width + piece_feature<F>(lane, i)] = v;
    }
}

/// Panels of lane `Lane` and of those behind it; `turn` counts panels.
template <class T, class S, int Lane>
__device__ void gemv_lane(const S &s, const float *x, int rows, int column0,
                          float *partials, float *tile, int turn) {
  if constexpr (Lane < S::lanes) {
    constexpr Format F = S::formats[Lane];
    for (int panel = 0; panel < T::BN / 16; ++panel, ++turn) {
      if (column0 + panel * 16 >= S::features)
        break;
      // Two buffers: a warp may be one panel ahead of the sums.
      float *partial = partials + turn % 2 * T::partial;
      gemv_panel<T, F, S::k>(
          s.weights[Lane] + (column0 / 16 + panel) * panel_bytes(F, S::k), x,
          rows, partial + threadIdx.x / 32 * (T::R * panel_width));
      __syncthreads();
      if (threadIdx.x < T::R * panel_width) {
        float sum = partial[threadIdx.x];
#pragma unroll
        for (int warp = 1; warp < T::warps; ++warp)
          sum += partial[warp * (T::R * panel_width) + threadIdx.x];
        tile[threadIdx.x / 16 * T::width + Lane * T::BN + panel * 16 +
             threadIdx.x % 16] = sum;
      }
    }
    gemv_lane<T, S, Lane + 1>(s, x, rows, column0, partials, tile, turn);
  }
}

template <class T, class S>
__device__ void gemv(const S &s, const float *x, long long all_rows,
                     long long row0, int column0, float *shared) {
  float *tile = shared + 2 * T::partial; // [R][width]
  int rows = int(min((long long)T::R, all_rows - row0));
  gemv_lane<T, S, 0>(s, x + row0 * S::k, rows, column0, shared, tile, 0);
  __syncthreads();
  for (int e = threadIdx.x; e < rows * T::BN; e += T::threads) {
    int column = e % T::BN;
    if (column0 + column < S::features)
      s.template operator()<T::BN>(tile + e / T::BN * T::width + column,
                                   row0 + e / T::BN, column0 + column);
  }
}

} // namespace gptc
