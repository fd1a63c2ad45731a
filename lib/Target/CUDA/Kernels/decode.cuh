//===- decode.cuh - attention of few tokens, keys split over blocks -------===//
//
// Split s of `splits` takes the pages s, s + splits, ... of a token's sequence:
// a page's split is fixed by its number, so a row's bits depend on its own keys
// only. Each leaves its unnormalised output, maximum and sum in scratch; a
// second launch combines them in order.
//
// Scratch: [tokens][query heads][splits][D + 2]. Descriptions A are those of
// attention_rows.cuh.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "attention_rows.cuh"
#include "math.cuh"

namespace gptc {

/// R query heads of a group at a time; KB keys, head size D.
template <int R_, int KB_, int D_> struct DecodeTile {
  static constexpr int threads = 128, R = R_, KB = KB_, D = D_;
  /// Scores: a thread has one key and a part of the channels.
  static constexpr int parts = threads / KB, part = (D + parts - 1) / parts;
  /// Output: a thread has every 128th channel and a part of the keys.
  static constexpr int channels = D < 128 ? (D + 31) / 32 * 32 : 128;
  static constexpr int key_groups = threads / channels;
  static constexpr int turns = (D + channels - 1) / channels;
  static constexpr int q_at = 0;                           // [R][D]
  static constexpr int s_at = q_at + R * D;                // [parts][R][KB]
  static constexpr int o_at = s_at + parts * R * KB;       // [key_groups][R][D]
  static constexpr int max_at = o_at + key_groups * R * D; // [R]
  static constexpr int sum_at = max_at + R, factor_at = sum_at + R;
  static constexpr int shared = 4 * (factor_at + R);
};

/// blockIdx.x: token; blockIdx.y: KV head and R heads of its group; blockIdx.z:
/// split.
template <class T, class C, class A, class Q>
__device__ void decode_split(const A &a, const Q *q, const gptc_kv_view *view,
                             const int *positions, const int *sequences,
                             float *scratch, float *shared) {
  constexpr int heads = C::heads * A::groups;
  constexpr int tiles = (A::groups + T::R - 1) / T::R; // of a group
  const int tid = threadIdx.x, lane = tid % 32, warp = tid / 32;
  const int kv_head = blockIdx.y / tiles;
  const int g0 = blockIdx.y % tiles * T::R;
  const int rows = min(T::R, A::groups - g0);
  const long long t = blockIdx.x;
  const long long query = positions[t], visible = query + 1;
  const int sequence = sequences[t];
  const long long row0 = t * heads + kv_head * A::groups + g0;
  float *qs = shared + T::q_at, *ss = shared + T::s_at, *os = shared + T::o_at;
  float *maxima = shared + T::max_at, *sums = shared + T::sum_at;
  float *factors = shared + T::factor_at;
  for (int e = tid; e < T::R * T::D; e += T::threads)
    qs[e] = e / T::D < rows ? widen(q[row0 * T::D + e]) * A::scale : 0.0f;
  if (tid < T::R) {
    maxima[tid] = -infinity();
    sums[tid] = 0;
  }
  float o[T::R][T::turns] = {};
  const int key = tid % T::KB, part = tid / T::KB;
  const int channel = tid % T::channels, group = tid / T::channels;

  const long long first = first_block<A>(visible, C::page);
  // The first page from there on that is this split's.
  long long page =
      first + (blockIdx.z + A::splits - first % A::splits) % A::splits;
  for (; page * C::page < visible; page += A::splits) {
    const typename C::E *keys = C::at(view, sequence, page, kv_head);
    const typename C::E *values = C::values(keys);
    for (int slot0 = 0; slot0 < C::page; slot0 += T::KB) {
      const long long base = page * C::page + slot0;
      if (base >= visible)
        break;
      const int count = int(min((long long)T::KB, visible - base));
      __syncthreads();
      float acc[T::R] = {};
#pragma unroll 8
      for (int i = 0; i < T::part; ++i) {
        int d = part * T::part + i;
        bool inside = key < count && (T::D % T::parts == 0 || d < T::D);
        float k = 0;
        if (inside)
          k = widen(keys[(long long)d * C::page + slot0 + key]);
#pragma unroll
        for (int r = 0; r < T::R; ++r)
          acc[r] = fmaf(inside ? qs[r * T::D + d] : 0.0f, k, acc[r]);
      }
#pragma unroll
      for (int r = 0; r < T::R; ++r)
        ss[(part * T::R + r) * T::KB + key] = acc[r];
      __syncthreads();
      for (int r = warp; r < T::R; r += T::threads / 32) {
        float best = -infinity();
        for (int j = lane; j < T::KB; j += 32) {
          float s = ss[r * T::KB + j];
          for (int i = 1; i < T::parts; ++i)
            s += ss[(i * T::R + r) * T::KB + j];
          bool seen = r < rows && sees<A>(visible, base + j);
          s = seen ? a.score(s, kv_head * A::groups + g0 + r, query, base + j,
                             {})
                   : -infinity();
          ss[r * T::KB + j] = s;
          best = fmaxf(best, s);
        }
        float old = maxima[r], m = fmaxf(old, warp_max(best));
        float reference = m == -infinity() ? 0.0f : m;
        float factor = exp_f32(old - reference), sum = 0;
        for (int j = lane; j < T::KB; j += 32) {
          float p = exp_f32(ss[r * T::KB + j] - reference);
          ss[r * T::KB + j] = p;
          sum += p;
        }
        sum = warp_sum(sum);
        __syncwarp();
        if (lane == 0) {
          maxima[r] = m;
          sums[r] = fmaf(sums[r], factor, sum);
          factors[r] = factor;
        }
      }
      __syncthreads();
      if (group < T::key_groups) {
#pragma unroll
        for (int r = 0; r < T::R; ++r)
#pragma unroll
          for (int i = 0; i < T::turns; ++i)
            o[r][i] *= factors[r];
        for (int j = group; j < count; j += T::key_groups)
#pragma unroll
          for (int i = 0; i < T::turns; ++i) {
            int d = channel + i * T::channels;
            float v = 0;
            if (d < T::D)
              v = widen(values[(long long)(slot0 + j) * C::pitch + d]);
#pragma unroll
            for (int r = 0; r < T::R; ++r)
              o[r][i] = fmaf(ss[r * T::KB + j], v, o[r][i]);
          }
      }
    }
  }
  __syncthreads();
  if (group < T::key_groups)
#pragma unroll
    for (int r = 0; r < T::R; ++r)
#pragma unroll
      for (int i = 0; i < T::turns; ++i)
        if (channel + i * T::channels < T::D)
          os[(group * T::R + r) * T::D + channel + i * T::channels] = o[r][i];
  __syncthreads();
  for (int e = tid; e < rows * T::D; e += T::threads) {
    float v = os[e];
    for (int i = 1; i < T::key_groups; ++i)
      v += os[i * T::R * T::D + e];
    scratch[((row0 + e / T::D) * A::splits + blockIdx.z) * (T::D + 2) +
            e % T::D] = v;
  }
  if (tid < rows) {
    float *to =
        scratch + ((row0 + tid) * A::splits + blockIdx.z) * (T::D + 2) + T::D;
    to[0] = maxima[tid];
    to[1] = sums[tid];
  }
}

/// blockIdx.x: row of q, (token, head).
template <int Threads, int D, int Splits, class O>
__device__ void decode_combine(const float *scratch, O *out) {
  const float *parts = scratch + (long long)blockIdx.x * Splits * (D + 2);
  float m = -infinity(), l = 0;
  for (int s = 0; s < Splits; ++s)
    m = fmaxf(m, parts[s * (D + 2) + D]);
  float reference = m == -infinity() ? 0.0f : m;
  for (int s = 0; s < Splits; ++s)
    l = fmaf(parts[s * (D + 2) + D + 1],
             exp_f32(parts[s * (D + 2) + D] - reference), l);
  float inverse = l == 0.0f ? 0.0f : 1.0f / l;
  for (int d = threadIdx.x; d < D; d += Threads) {
    float v = 0;
    for (int s = 0; s < Splits; ++s)
      v = fmaf(parts[s * (D + 2) + d],
               exp_f32(parts[s * (D + 2) + D] - reference), v);
    out[(long long)blockIdx.x * D + d] = narrow<O>(v * inverse);
  }
}

} // namespace gptc
