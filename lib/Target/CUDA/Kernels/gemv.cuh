//===- gemv.cuh - few rows straight from the stored weights ---------------===//
//
// A block computes up to R rows times BN features of every lane's weight. Its
// eight warps share the panels, and several warps share the input features of a
// panel: they take strips in turn, so that together they read consecutive
// bytes. Each lane has strips under way while it multiplies others. Rows of x
// lie in shared memory as f32, whatever their element X, all of them or, of
// long ones, chunk by chunk.
//
// A lane adds its inputs in order; sums are added over the lanes by a butterfly
// and over the warps in order. None of that depends on R, so that a row has the
// same bits in every kernel of this class.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "elements.cuh"
#include "epilogue.cuh"
#include "strips.cuh"

namespace gptc {

template <int R_, int BN_, int Lanes, int K_> struct GemvTile {
  static constexpr int threads = 256, warps = threads / 32;
  static constexpr int R = R_, BN = BN_, K = K_;
  static constexpr int width = Lanes * BN;
  /// Input features in shared memory at once, with zeros up to whole strips.
  static constexpr int chunk =
      (K + 63) / 64 * 64 < 8192 / R ? (K + 63) / 64 * 64 : 8192 / R;
  /// Strips that a lane has under way.
  static constexpr int ahead = R == 1 ? 4 : 2;
  static constexpr int partial = warps * R * panel_width; // elements
  static constexpr int tile_at = R * chunk, partial_at = tile_at + R * width;
  /// Bytes of shared memory.
  static constexpr int shared = 4 * (partial_at + 2 * partial);
};

/// N neighbours of a row as f32: loads of 16 bytes, of an odd four 8.
template <int N, class X>
__device__ void load_neighbours(float (&v)[N], const X *from) {
  if constexpr (N == 1) {
    v[0] = widen(load(from));
  } else if constexpr (is_same<X, float>) {
    static_assert(N == 4);
    float4 f = __ldg(reinterpret_cast<const float4 *>(from));
    v[0] = f.x, v[1] = f.y, v[2] = f.z, v[3] = f.w;
  } else {
    unsigned words[N / 2];
    if constexpr (N == 8) {
      uint4 w = __ldg(reinterpret_cast<const uint4 *>(from));
      words[0] = w.x, words[1] = w.y, words[2] = w.z, words[3] = w.w;
    } else {
      uint2 w = __ldg(reinterpret_cast<const uint2 *>(from));
      words[0] = w.x, words[1] = w.y;
    }
#pragma unroll
    for (int i = 0; i < N; ++i)
      v[i] = widen(X{(unsigned short)(words[i / 2] >> i % 2 * 16)});
  }
}

/// Input features k0 .. k0 + chunk of all rows, zeros past K and up to a
/// multiple of 4 rows.
template <class T, class X>
__device__ void gemv_stage(const X *x, int rows, int k0, float *to) {
  constexpr int most = 16 / sizeof(X); // neighbours of a load
  constexpr int V = T::K % most == 0 ? most : T::K % 4 == 0 ? 4 : 1;
  for (int row = 0; row < min(T::R, (rows + 3) / 4 * 4); ++row)
#pragma unroll 4
    for (int k = threadIdx.x * V; k < T::chunk; k += T::threads * V) {
      float v[V] = {};
      if (row < rows && k0 + k < T::K)
        load_neighbours(v, x + (long long)row * T::K + k0 + k);
      float *at = to + row * T::chunk + k;
      if constexpr (V == 1)
        *at = v[0];
      else
#pragma unroll
        for (int i = 0; i < V; i += 4)
          *reinterpret_cast<float4 *>(at + i) =
              make_float4(v[i], v[i + 1], v[i + 2], v[i + 3]);
    }
}

/// A warp's part of a panel: every `Splits`th strip.
template <class T, Format F, int Splits> struct GemvPanel {
  using S = Strip<F>;
  static constexpr int step = Splits * S::depth;
  static constexpr int count = (T::K + step - 1) / step; // strips of a warp
  static constexpr int ahead = count < T::ahead ? count : T::ahead;
  // A chunk begins with the first of the strips under way.
  static_assert(T::chunk >= T::K || T::chunk % (ahead * step) == 0);
  const unsigned char *codes, *scales; ///< of the first of the strips under way
  int k;                               ///< its first input
  S strips[ahead];
  float acc[T::R * S::features] = {};

  __device__ GemvPanel(const unsigned char *panel, int split)
      : codes(panel + split * S::bytes + S::codes_at()),
        scales(panel + split * S::bytes + S::scales_at()), k(split * S::depth) {
    begin<0>();
  }

  /// The strips of the chunk from k0 on, which x holds.
  __device__ void run(const float *x, int rows, int k0) {
    const int end = min(T::K, k0 + T::chunk);
    x += k - k0 + S::input();
    for (; k < end; k += ahead * step) {
      turn<0>(x, rows);
      x += ahead * step;
      codes += ahead * (Splits * S::bytes);
      scales += ahead * (Splits * S::bytes);
    }
  }

  /// Adds over the lanes; to[r * pitch + feature]. Lanes exchange halves of
  /// what they have, so that each adds fewer and fewer sums.
  __device__ void sum(float *to, int pitch) {
    add<16, T::R * S::features>(acc, 0, to, pitch);
  }

private:
  /// Fetches strip `I` from the first one under way, if there is one.
  template <int I> __device__ void fetch(S &strip) {
    const int first = k + I * step;
    if (T::K % S::depth == 0 ? first < T::K : first + S::input() < T::K)
      strip.fetch(codes + I * (Splits * S::bytes),
                  scales + I * (Splits * S::bytes));
    else if (T::K % S::depth != 0) // the lane's inputs, of the last strip
      strip.clear();
  }
  template <int I> __device__ void begin() {
    if constexpr (I < ahead) {
      fetch<I>(strips[I]);
      begin<I + 1>();
    }
  }
  /// Multiplies strip I of those under way and fetches another in its place;
  /// then the strips behind it.
  template <int I> __device__ void turn(const float *x, int rows) {
    if constexpr (I < ahead) {
      if (k + I * step < T::K) {
        strips[I].template multiply<T::R>(x + I * step, T::chunk, rows, acc);
        if constexpr (count > ahead)
          fetch<I + ahead>(strips[I]);
      }
      turn<I + 1>(x, rows);
    }
  }

  template <int Distance, int Count>
  __device__ static void add(float *v, int at, float *to, int pitch) {
    const int lane = threadIdx.x % 32;
    if constexpr (Distance >= S::beside) {
      constexpr int half = Count > 1 ? Count / 2 : 1;
      const bool upper = Count > 1 && (lane & Distance);
#pragma unroll
      for (int i = 0; i < half; ++i) {
        float keep = upper ? v[i + Count / 2] : v[i];
        float give = upper ? v[i] : v[i + Count / 2 % Count];
        v[i] = keep + __shfl_xor_sync(0xffffffffu, give, Distance);
      }
      add<Distance / 2, half>(v, upper ? at + half : at, to, pitch);
    } else {
      // Of lanes that have the same sums in the end the first writes.
      constexpr int sums = T::R * S::features, lanes = 32 / S::beside;
      if (lane / S::beside % (lanes > sums ? lanes / sums : 1) != 0)
        return;
#pragma unroll
      for (int i = 0; i < Count; ++i)
        to[(at + i) / S::features * pitch + lane % S::beside * S::features +
           (at + i) % S::features] = v[i];
    }
  }
};

/// `Count` lanes from `First` on, of one format. `turn` counts the barriers of
/// partial sums.
template <class T, class S, int First, int Count, class X>
__device__ void gemv_lanes(const S &s, const X *x, int rows, int column0,
                           float *shared, int &turn) {
  constexpr Format F = S::formats[First];
  constexpr int of_lane = T::BN / panel_width, panels = Count * of_lane;
  constexpr int groups = panels >= 8   ? 8
                         : panels >= 4 ? 4
                         : panels >= 2 ? 2
                                       : 1; // of warps
  constexpr int splits = T::warps / groups;
  const int warp = threadIdx.x / 32;
  float *tile = shared + T::tile_at;
  for (int panel0 = 0; panel0 < panels; panel0 += groups) {
    const int p = panel0 + warp / splits;
    const int lane = First + p / of_lane, column = p % of_lane * panel_width;
    const bool mine = p < panels && column0 + column < S::features;
    const unsigned char *matrix = s.weights[First];
#pragma unroll
    for (int i = 1; i < Count; ++i)
      matrix = lane == First + i ? s.weights[First + i] : matrix;
    // A warp without a panel reads the first one and adds nothing.
    GemvPanel<T, F, splits> panel(matrix + (mine ? column0 + column : 0) /
                                               panel_width *
                                               panel_bytes(F, T::K),
                                  warp % splits);
    for (int k0 = 0; k0 < T::K; k0 += T::chunk) {
      if (T::chunk < T::K || (First == 0 && panel0 == 0)) {
        if (First > 0 || panel0 > 0 || k0 > 0)
          __syncthreads();
        gemv_stage<T>(x, rows, k0, shared);
        __syncthreads();
      }
      if (mine)
        panel.run(shared, rows, k0);
    }
    float *to = tile + lane * T::BN + column;
    if constexpr (splits == 1) {
      if (mine)
        panel.sum(to, T::width);
    } else {
      // Two buffers: a warp may be a turn ahead of the sums.
      float *partials = shared + T::partial_at + turn++ % 2 * T::partial;
      constexpr int part = T::R * panel_width;
      if (mine)
        panel.sum(partials + warp * part, panel_width);
      __syncthreads();
      for (int e = threadIdx.x % (32 * splits); mine && e < part;
           e += 32 * splits) {
        const float *from = partials + warp / splits * splits * part + e;
        float sum = from[0];
#pragma unroll
        for (int i = 1; i < splits; ++i)
          sum += from[i * part];
        to[e / panel_width * T::width + e % panel_width] = sum;
      }
    }
  }
}

template <int N>
__host__ __device__ constexpr bool same_formats(const Format (&formats)[N]) {
  for (Format format : formats)
    if (format != formats[0])
      return false;
  return true;
}

/// All lanes at once where they have one format, else one after the other.
template <class T, class S, int Lane, class X>
__device__ void gemv_from(const S &s, const X *x, int rows, int column0,
                          float *shared, int &turn) {
  if constexpr (Lane == 0 && same_formats(S::formats)) {
    gemv_lanes<T, S, 0, S::lanes>(s, x, rows, column0, shared, turn);
  } else if constexpr (Lane < S::lanes) {
    gemv_lanes<T, S, Lane, 1>(s, x, rows, column0, shared, turn);
    gemv_from<T, S, Lane + 1>(s, x, rows, column0, shared, turn);
  }
}

template <class T, class S, class X>
__device__ void gemv(const S &s, const X *x, long long all_rows, long long row0,
                     int column0, float *shared) {
  const int rows = int(min((long long)T::R, all_rows - row0));
  if (rows <= 0)
    return;
  int turn = 0;
  gemv_from<T, S, 0>(s, x + row0 * T::K, rows, column0, shared, turn);
  __syncthreads();
  finish<T, T::width>(
      s, shared + T::tile_at, rows, [&](int r) { return row0 + r; }, all_rows,
      column0);
}

} // namespace gptc
