//===- gemm_ffma.cuh - f32 GEMM by multiply-adds --------------------------===//
//
// A block computes BM rows of x [M][K] times BN features of each lane's weight,
// K sequentially for every element, so a row's bits depend on that row alone.
// Tiles of x and of the weights, as f32, lie in shared memory; the next ones
// are fetched into registers meanwhile. Then accumulators go through shared
// memory, 16 rows at a time, to the section's epilogue, which thus sees the
// other channels of a head.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "epilogue.cuh"
#include "weights.cuh"

namespace gptc {

template <int BM_, int BN_, int Lanes> struct FfmaTile {
  static constexpr int threads = 256, BM = BM_, BN = BN_, BK = 16;
  static constexpr int width = Lanes * BN;            // columns of all lanes
  static constexpr int TM = BM / 16, TN = width / 16; // of a thread
  static constexpr int a_pitch = BM + 4;              // rows of x, transposed
  static constexpr int panels = BN / 16;              // of a lane
  static constexpr int a_loads = BM * BK / 4 / threads;
  static constexpr int b_loads = (panels * 32 + threads - 1) / threads;
  static constexpr int mainloop = BK * (a_pitch + width);
  static constexpr int epilogue = 16 * (width + 1);
  /// Bytes of shared memory.
  static constexpr int shared = 4 * (mainloop > epilogue ? mainloop : epilogue);
  static_assert(BM * BK % (4 * threads) == 0 && BN % 16 == 0);
};

/// The pieces of one lane's weight that a thread fetches, and those of the
/// lanes behind it.
template <class T, class S, int Lane> struct FfmaWeights {
  static constexpr Format F = S::formats[Lane];
  Piece<F> pieces[T::b_loads];
  FfmaWeights<T, S, Lane + 1> others;

  __device__ void fetch(const S &s, int column0, int k0) {
    const unsigned char *matrix =
        s.weights[Lane] + column0 / 16 * panel_bytes(F, S::k);
#pragma unroll
    for (int i = 0; i < T::b_loads; ++i) {
      int p = threadIdx.x + i * T::threads, panel = p / 32;
      bool inside = panel < T::panels && column0 + panel * 16 < S::features;
      if (inside)
        pieces[i].fetch(matrix + panel * panel_bytes(F, S::k), k0, p % 32,
                        S::k);
      else
        pieces[i].clear();
    }
    others.fetch(s, column0, k0);
  }
  __device__ void store(float *b) const {
#pragma unroll
    for (int i = 0; i < T::b_loads; ++i) {
      int p = threadIdx.x + i * T::threads, panel = p / 32;
      if (panel >= T::panels)
        break;
      float w[8];
      pieces[i].values(w);
#pragma unroll
      for (int j = 0; j < 8; ++j)
        b[piece_row<F>(p % 32, j) * T::width + Lane * T::BN + panel * 16 +
          piece_feature<F>(p % 32, j)] = w[j];
    }
    others.store(b);
  }
};
template <class T, class S> struct FfmaWeights<T, S, S::lanes> {
  __device__ void fetch(const S &, int, int) {}
  __device__ void store(float *) const {}
};

/// The part of a tile of x that a thread fetches: four channels of a row.
template <class T, int K> struct FfmaRows {
  float4 v[T::a_loads];

  __device__ void fetch(const float *x, long long rows, long long row0,
                        int k0) {
#pragma unroll
    for (int i = 0; i < T::a_loads; ++i) {
      int p = threadIdx.x + i * T::threads;
      long long row = row0 + p / 4;
      int k = k0 + p % 4 * 4;
      const float *from = x + row * K + k;
      v[i] = make_float4(0, 0, 0, 0);
      if (row >= rows)
        continue;
      if (K % 4 == 0) {
        if (k < K)
          v[i] = __ldg(reinterpret_cast<const float4 *>(from));
      } else {
        v[i].x = k < K ? __ldg(from) : 0.0f;
        v[i].y = k + 1 < K ? __ldg(from + 1) : 0.0f;
        v[i].z = k + 2 < K ? __ldg(from + 2) : 0.0f;
        v[i].w = k + 3 < K ? __ldg(from + 3) : 0.0f;
      }
    }
  }
  __device__ void store(float *a) const {
#pragma unroll
    for (int i = 0; i < T::a_loads; ++i) {
      int p = threadIdx.x + i * T::threads;
      float *to = a + p % 4 * 4 * T::a_pitch + p / 4;
      to[0] = v[i].x;
      to[T::a_pitch] = v[i].y;
      to[2 * T::a_pitch] = v[i].z;
      to[3 * T::a_pitch] = v[i].w;
    }
  }
};

template <class T, class S>
__device__ void gemm_ffma(const S &s, const float *x, long long rows,
                          long long row0, int column0, float *shared) {
  float *a = shared, *b = shared + T::BK * T::a_pitch;
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  float acc[T::TM][T::TN] = {};
  FfmaRows<T, S::k> next_a;
  FfmaWeights<T, S, 0> next_b;
  next_a.fetch(x, rows, row0, 0);
  next_b.fetch(s, column0, 0);
  for (int k0 = 0; k0 < S::k; k0 += T::BK) {
    __syncthreads();
    next_a.store(a);
    next_b.store(b);
    __syncthreads();
    if (k0 + T::BK < S::k) {
      next_a.fetch(x, rows, row0, k0 + T::BK);
      next_b.fetch(s, column0, k0 + T::BK);
    }
#pragma unroll 4
    for (int k = 0; k < T::BK; ++k) {
      float av[T::TM], bv[T::TN];
#pragma unroll
      for (int i = 0; i < T::TM; ++i)
        av[i] = a[k * T::a_pitch + ty * T::TM + i];
#pragma unroll
      for (int j = 0; j < T::TN; ++j)
        bv[j] = b[k * T::width + tx + 16 * j];
#pragma unroll
      for (int i = 0; i < T::TM; ++i)
#pragma unroll
        for (int j = 0; j < T::TN; ++j)
          acc[i][j] = fmaf(av[i], bv[j], acc[i][j]);
    }
  }
  constexpr int pitch = T::width + 1;
#pragma unroll
  for (int i = 0; i < T::TM; ++i) {
    __syncthreads();
#pragma unroll
    for (int j = 0; j < T::TN; ++j)
      shared[ty * pitch + tx + 16 * j] = acc[i][j];
    __syncthreads();
    finish<T, pitch>(
        s, shared, 16, [&](int r) { return row0 + r * T::TM + i; }, rows,
        column0);
  }
}

} // namespace gptc
