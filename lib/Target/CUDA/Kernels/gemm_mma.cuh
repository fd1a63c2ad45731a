//===- gemm_mma.cuh - GEMM on tensor cores, bf16, f16 or tf32 inputs ------===//
//
// A block computes BM rows of x [M][K] times BN features of each lane's weight
// in mma.sync m16n8k16 (tf32: k8), K sequentially, sums in f32. What lies
// in memory in their element is copied to shared memory as it is (cp.async);
// other rows and weights become numbers and are rounded. Several stages are
// under way at once; one barrier a stage.
//
// Shared memory of a stage: x [BM][BK], rows of 64 bytes, whose 16-byte chunks
// are swizzled by bits 1 and 2 of the row; then weights by panel [BK][16], the
// two chunks of a row swizzled by bit 2 of k. Either way the eight rows of an
// 8x8 matrix lie in different banks. tf32: weights [BK][width + 8], so that the
// words (k, n) of 4 k and 8 n do, since ldmatrix transposes 16-bit elements
// only.
//
// The epilogue takes 32 rows at a time.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "epilogue.cuh"
#include "mma.cuh"

namespace gptc {

template <class E_, int BM_, int BN_, int Lanes, int Stages> struct MmaTile {
  using E = E_;
  static constexpr bool tf32 = is_same<E, Tf32>;
  static constexpr int BM = BM_, BN = BN_, BK = 64 / sizeof(E);
  static constexpr int stages = Stages;
  static constexpr int chunk = 16 / sizeof(E); // channels of 16 bytes
  static constexpr int width = Lanes * BN;     // columns of all lanes
  static constexpr int panels = BN / 16;       // of a lane
  /// Warps: each has 32 rows and a part of the panels of all lanes.
  static constexpr int rows_of_warps = BM / 32;
  static constexpr int columns_of_warps = width > 128 ? 4 : 2;
  static constexpr int warp_panels =
      (width / 16 + columns_of_warps - 1) / columns_of_warps;
  static constexpr int threads = 32 * rows_of_warps * columns_of_warps;
  static constexpr int a_bytes = BM * 64;
  static constexpr int b_pitch = width + 8; // of tf32, words
  static constexpr int b_bytes = tf32 ? BK * b_pitch * 4 : BK * width * 2;
  static constexpr int stage_bytes = a_bytes + b_bytes;
  static constexpr int a_loads = BM * 4 / threads;
  static constexpr int b_loads =
      (panels * 2 * BK + threads - 1) / threads; // of a lane
  static constexpr int tile_pitch = width + 8;   // of the epilogue
  static constexpr int epilogue = 32 * tile_pitch * 4;
  /// Bytes of shared memory.
  static constexpr int shared =
      Stages * stage_bytes > epilogue ? Stages *stage_bytes : epilogue;
  static_assert(BM % 32 == 0 && BN % 16 == 0);

  /// Byte of chunk `index` of a row of x.
  __device__ static int a_at(int row, int index) {
    return row * 64 + (index ^ (row >> 1 & 3)) * 16;
  }
  /// Byte of features 8 * half of row k of a panel.
  __device__ static int b_at(int panel, int k, int half) {
    return tf32 ? (k * b_pitch + panel * 16 + half * 8) * 4
                : panel * (BK * 32) + k * 32 + (half ^ (k >> 2 & 1)) * 16;
  }
};

/// 16 bytes of shared memory: numbers from `first` on, rounded.
template <class E, int N>
__device__ uint4 chunk_of(const float (&v)[N], int first = 0) {
  if constexpr (is_same<E, Tf32>)
    return make_uint4(to_tf32(v[first]), to_tf32(v[first + 1]),
                      to_tf32(v[first + 2]), to_tf32(v[first + 3]));
  else
    return make_uint4(pack<E>(v[first], v[first + 1]),
                      pack<E>(v[first + 2], v[first + 3]),
                      pack<E>(v[first + 4], v[first + 5]),
                      pack<E>(v[first + 6], v[first + 7]));
}

/// The part of a tile of x [M][K], of element X, that a thread fetches: chunks
/// of a row.
template <class T, int K, class X> struct MmaRows {
  static constexpr bool copied = is_same<X, typename T::E> && K % T::chunk == 0;
  float v[copied ? 1 : T::a_loads][T::chunk];

  /// Begins to copy what is copied.
  __device__ void copy(const X *x, long long rows, long long row0, int k0,
                       unsigned char *stage) const {
    if constexpr (copied)
#pragma unroll
      for (int i = 0; i < T::a_loads; ++i) {
        int p = threadIdx.x + i * T::threads;
        long long row = row0 + p / 4;
        int k = k0 + p % 4 * T::chunk;
        bool inside = row < rows && k < K;
        copy_async(stage + T::a_at(p / 4, p % 4), inside ? x + row * K + k : x,
                   inside);
      }
  }
  /// Fetches the rest.
  __device__ void fetch(const X *x, long long rows, long long row0, int k0) {
    if constexpr (!copied)
      fetch_chunks(x, rows, row0, k0);
  }
  __device__ void fetch_chunks(const X *x, long long rows, long long row0,
                               int k0) {
#pragma unroll
    for (int i = 0; i < T::a_loads; ++i) {
      int p = threadIdx.x + i * T::threads;
      long long row = row0 + p / 4;
      int k = k0 + p % 4 * T::chunk;
      const X *from = x + row * K + k;
#pragma unroll
      for (int j = 0; j < T::chunk; j += 4)
        if constexpr (is_same<X, float> && K % 4 == 0) {
          float4 f = make_float4(0, 0, 0, 0);
          if (row < rows && k + j < K)
            f = __ldg(reinterpret_cast<const float4 *>(from + j));
          v[i][j] = f.x, v[i][j + 1] = f.y, v[i][j + 2] = f.z,
          v[i][j + 3] = f.w;
        } else {
#pragma unroll
          for (int l = j; l < j + 4; ++l)
            v[i][l] = row < rows && k + l < K ? widen(load(from + l)) : 0.0f;
        }
    }
  }
  __device__ void store(unsigned char *stage) const {
    if constexpr (!copied)
#pragma unroll
      for (int i = 0; i < T::a_loads; ++i) {
        int p = threadIdx.x + i * T::threads;
        *reinterpret_cast<uint4 *>(stage + T::a_at(p / 4, p % 4)) =
            chunk_of<typename T::E>(v[i]);
      }
  }
};

/// The weights w of piece p, of the 16 rows from `row` of a panel.
template <class T, Format F>
__device__ void store_piece(unsigned char *b, int panel, int row, int p,
                            const float (&w)[8]) {
  using E = typename T::E;
  if constexpr (T::tf32 && is_along_k(F)) {
#pragma unroll
    for (int j = 0; j < 8; ++j)
      *reinterpret_cast<unsigned *>(
          b + T::b_at(panel, row + piece_row<F>(p, j), 0) + p % 16 * 4) =
          to_tf32(w[j]);
  } else if constexpr (T::tf32) {
    auto to = reinterpret_cast<uint4 *>(b + T::b_at(panel, row + p / 2, p % 2));
    to[0] = chunk_of<E>(w), to[1] = chunk_of<E>(w, 4);
  } else if constexpr (is_along_k(F)) {
    // Two lanes exchange features, so that each stores pairs: the even one the
    // first four rows, the odd one the others.
    bool odd = p % 2;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      float theirs = __shfl_xor_sync(0xffffffffu, odd ? w[j] : w[j + 4], 1);
      float mine = odd ? w[j + 4] : w[j];
      int k = row + piece_row<F>(p, odd ? j + 4 : j), n = p % 16 / 2;
      *reinterpret_cast<unsigned *>(b + T::b_at(panel, k, n / 4) + n % 4 * 4) =
          odd ? pack<E>(theirs, mine) : pack<E>(mine, theirs);
    }
  } else {
    *reinterpret_cast<uint4 *>(b + T::b_at(panel, row + p / 2, p % 2)) =
        chunk_of<E>(w);
  }
}

/// The pieces of one lane's weight that a thread fetches, and those of the
/// lanes behind it.
template <class T, class S, int Lane> struct MmaWeights {
  static constexpr Format F = S::formats[Lane];
  static constexpr bool copied = is_stored_as<typename T::E>(F);
  Piece<F> pieces[copied ? 1 : T::b_loads];
  MmaWeights<T, S, Lane + 1> others;

  /// f(i, panel, its bytes or null, first row of 16, piece) for the thread's
  /// pieces.
  template <class Fn>
  __device__ void each(const S &s, int column0, const Fn &f) const {
    const unsigned char *matrix =
        s.weights[Lane] + column0 / 16 * panel_bytes(F, S::k);
#pragma unroll
    for (int i = 0; i < T::b_loads; ++i) {
      int p = threadIdx.x + i * T::threads, panel = p / (2 * T::BK);
      if (panel >= T::panels)
        break;
      bool inside = column0 + panel * 16 < S::features;
      f(i, panel, inside ? matrix + panel * panel_bytes(F, S::k) : nullptr,
        p / 32 * 16 % T::BK, p % 32);
    }
  }
  /// Begins to copy what is copied.
  __device__ void copy(const S &s, int column0, int k0,
                       unsigned char *stage) const {
    if constexpr (copied)
      each(s, column0,
           [&](int, int panel, const unsigned char *from, int row, int p) {
             int k = row + p / 2;
             bool inside = from && k0 + k < S::k;
             copy_async(stage + T::a_bytes +
                            T::b_at(Lane * T::panels + panel, k, p % 2),
                        inside ? from + (long long)(k0 + k) * 32 + p % 2 * 16
                               : s.weights[Lane],
                        inside);
           });
    others.copy(s, column0, k0, stage);
  }
  /// Fetches the rest.
  __device__ void fetch(const S &s, int column0, int k0) {
    if constexpr (!copied)
      each(s, column0,
           [&](int i, int, const unsigned char *from, int row, int p) {
             if (from)
               pieces[i].fetch(from, k0 + row, p, S::k);
             else
               pieces[i].clear();
           });
    others.fetch(s, column0, k0);
  }
  __device__ void store(const S &s, int column0, unsigned char *stage) const {
    if constexpr (!copied)
      each(s, column0,
           [&](int i, int panel, const unsigned char *, int row, int p) {
             float w[8];
             pieces[i].values(w);
             store_piece<T, F>(stage + T::a_bytes, Lane * T::panels + panel,
                               row, p, w);
           });
    others.store(s, column0, stage);
  }
};
template <class T, class S> struct MmaWeights<T, S, S::lanes> {
  __device__ void copy(const S &, int, int, unsigned char *) const {}
  __device__ void fetch(const S &, int, int) {}
  __device__ void store(const S &, int, unsigned char *) const {}
};

/// The right operands of two mma, 8 features each, from row k of a panel on.
template <class T>
__device__ void load_panel(unsigned (&b)[4], const unsigned char *weights,
                           int panel, int k) {
  const int lane = threadIdx.x % 32;
  if constexpr (T::tf32) {
#pragma unroll
    for (int i = 0; i < 4; ++i)
      b[i] = *reinterpret_cast<const unsigned *>(
          weights + T::b_at(panel, k + lane % 4 + i % 2 * 4, i / 2) +
          lane / 4 * 4);
  } else {
    ldmatrix_transposed(b, weights + T::b_at(panel, k + lane % 16, lane / 16));
  }
}

/// One stage: the warp's 32 rows times its columns.
template <class T>
__device__ void mma_stage(float (&acc)[2][2 * T::warp_panels][4],
                          const unsigned char *stage) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int row0 = warp % T::rows_of_warps * 32;
  const int panel0 = warp / T::rows_of_warps * T::warp_panels;
#pragma unroll
  for (int k = 0; k < 4; k += 2) { // chunks
    unsigned a[2][4];
#pragma unroll
    for (int i = 0; i < 2; ++i)
      ldmatrix(a[i], stage + T::a_at(row0 + i * 16 + lane % 16, k + lane / 16));
#pragma unroll
    for (int j = 0; j < T::warp_panels; ++j) {
      if (panel0 + j >= T::width / 16)
        break;
      unsigned b[4];
      load_panel<T>(b, stage + T::a_bytes, panel0 + j, k * T::chunk);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        mma(typename T::E(), acc[i][2 * j], a[i], b[0], b[1]);
        mma(typename T::E(), acc[i][2 * j + 1], a[i], b[2], b[3]);
      }
    }
  }
}

template <class T, class S, class X>
__device__ void gemm_mma(const S &s, const X *x, long long rows, long long row0,
                         int column0, float *shared) {
  auto stages = reinterpret_cast<unsigned char *>(shared);
  constexpr int steps = (S::k + T::BK - 1) / T::BK;
  float acc[2][2 * T::warp_panels][4] = {};
  MmaRows<T, S::k, X> next_a;
  MmaWeights<T, S, 0> next_b;
#pragma unroll
  for (int i = 0; i < T::stages - 1; ++i) {
    if (i < steps) {
      next_a.copy(x, rows, row0, i * T::BK, stages + i * T::stage_bytes);
      next_b.copy(s, column0, i * T::BK, stages + i * T::stage_bytes);
    }
    commit_copies();
  }
  next_a.fetch(x, rows, row0, 0);
  next_b.fetch(s, column0, 0);
  next_a.store(stages);
  next_b.store(s, column0, stages);
  int now = 0; // the stage of this step
  for (int step = 0; step < steps; ++step) {
    wait_for_copies<T::stages - 2>();
    __syncthreads();
    int ahead = step + T::stages - 1;
    int last = now == 0 ? T::stages - 1 : now - 1;
    if (ahead < steps) {
      unsigned char *to = stages + last * T::stage_bytes;
      next_a.copy(x, rows, row0, ahead * T::BK, to);
      next_b.copy(s, column0, ahead * T::BK, to);
    }
    commit_copies();
    if (step + 1 < steps) {
      next_a.fetch(x, rows, row0, (step + 1) * T::BK);
      next_b.fetch(s, column0, (step + 1) * T::BK);
    }
    mma_stage<T>(acc, stages + now * T::stage_bytes);
    now = now + 1 == T::stages ? 0 : now + 1;
    if (step + 1 < steps) {
      next_a.store(stages + now * T::stage_bytes);
      next_b.store(s, column0, stages + now * T::stage_bytes);
    }
  }
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int first = warp / T::rows_of_warps * T::warp_panels * 16;
  for (int part = 0; part < T::rows_of_warps; ++part) {
    __syncthreads();
    if (warp % T::rows_of_warps == part)
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int j = 0; j < 2 * T::warp_panels; ++j) {
          if (first + j * 8 >= T::width)
            break;
          float *to = shared + (i * 16 + lane / 4) * T::tile_pitch + first +
                      j * 8 + lane % 4 * 2;
          *reinterpret_cast<float2 *>(to) =
              make_float2(acc[i][j][0], acc[i][j][1]);
          *reinterpret_cast<float2 *>(to + 8 * T::tile_pitch) =
              make_float2(acc[i][j][2], acc[i][j][3]);
        }
    __syncthreads();
    finish<T, T::tile_pitch>(
        s, shared, 32, [&](int r) { return row0 + part * 32 + r; }, rows,
        column0);
  }
}

} // namespace gptc
