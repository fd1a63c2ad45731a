//===- attention.cuh - flash attention by multiply-adds, f32 --------------===//
//
// A block takes R query rows against one KV head, key block by key block, with
// the online softmax of Milakov and Gimelshein (arXiv:1805.02867) as in flash
// attention (arXiv:2205.14135). Blocks are counted from position 0 and every
// row sees its blocks in that order; one that a row sees nothing of leaves its
// bits alone: a row's bits depend on its own keys only, not on the batch nor
// on its place in the tile.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "attention_rows.cuh"
#include "math.cuh"

namespace gptc {

/// Sizes of a tile: R rows, KB keys, head size D.
template <int R_, int KB_, int D_> struct AttentionTile {
  static constexpr int threads = 256, R = R_, KB = KB_, D = D_;
  /// Scores: a thread has one key and a stretch of rows.
  static constexpr int score_rows = R / (threads / KB);
  static constexpr int slice = 32; // channels of keys in shared memory
  /// Output: a thread has one channel and a stretch of rows.
  static constexpr int channels = (D + 31) / 32 * 32;
  static constexpr int row_groups = threads / channels;
  static constexpr int out_rows = (R + row_groups - 1) / row_groups;
  static constexpr int pitch = R + 4;                  // of scores
  static constexpr int q_at = 0;                       // [D][R]
  static constexpr int k_at = q_at + D * R;            // [slice][KB + 1]
  static constexpr int s_at = k_at + slice * (KB + 1); // [KB][pitch]
  static constexpr int max_at = s_at + KB * pitch;     // [R]
  static constexpr int sum_at = max_at + R;            // [R]
  static constexpr int factor_at = sum_at + R;         // [R]
  static constexpr int shared = 4 * (factor_at + R);
  static_assert(R % (threads / KB) == 0 && channels <= threads);

  /// Channels d0 .. d0 + slice of the block's keys.
  template <class Keys>
  __device__ static void stage(const Keys &keys, int count, int d0, float *ks) {
    for (int e = threadIdx.x; e < slice * KB; e += threads) {
      int d = Keys::by_channel ? e / KB : e % slice;
      int j = Keys::by_channel ? e % KB : e / slice;
      if (d0 + d < D)
        ks[d * (KB + 1) + j] = j < count ? keys.key(j, d0 + d) : 0.0f;
    }
  }

  /// m' = max(m, max s); p = exp(s - m'); l' = l exp(m - m') + sum p, for the
  /// rows of the warp.
  __device__ static void softmax(float *shared) {
    float *ss = shared + s_at, *maxima = shared + max_at;
    float *sums = shared + sum_at, *factors = shared + factor_at;
    const int lane = threadIdx.x % 32;
    for (int r = threadIdx.x / 32; r < R; r += threads / 32) {
      float best = -infinity();
      for (int j = lane; j < KB; j += 32)
        best = fmaxf(best, ss[j * pitch + r]);
      float old = maxima[r];
      float m = fmaxf(old, warp_max(best));
      // A row that has seen no key yet: any finite reference will do.
      float reference = m == -infinity() ? 0.0f : m;
      float factor = exp_f32(old - reference), sum = 0;
      for (int j = lane; j < KB; j += 32) {
        float p = exp_f32(ss[j * pitch + r] - reference);
        ss[j * pitch + r] = p;
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
  }

  template <class A, class Keys, class Rows, class Q, class O>
  __device__ static void run(const A &a, Keys keys, const Rows &rows,
                             const Q *q, O *out, float *shared) {
    float *qs = shared + q_at, *ks = shared + k_at, *ss = shared + s_at;
    float *sums = shared + sum_at, *factors = shared + factor_at;
    const int tid = threadIdx.x;
    const int key = tid % KB, score_row = tid / KB * score_rows;
    const int channel = tid % channels, out_row = tid / channels * out_rows;
    const bool writes = channel < D && tid < channels * row_groups;
    __syncthreads();
    for (int e = tid; e < R * D; e += threads)
      qs[e % D * R + e / D] =
          e / D < rows.count
              ? widen(q[rows.place(e / D) * D + e % D]) * A::scale
              : 0.0f;
    for (int r = tid; r < R; r += threads) {
      shared[max_at + r] = -infinity();
      sums[r] = 0;
    }
    float o[out_rows] = {};

    const long long most = rows.visible(rows.count - 1);
    for (long long block = first_block<A>(rows.visible(0), KB);
         block * KB < most; ++block) {
      const long long base = block * KB;
      const int count = int(min((long long)KB, most - base));
      keys.seek(base);
      float acc[score_rows] = {};
      for (int d0 = 0; d0 < D; d0 += slice) {
        __syncthreads();
        stage(keys, count, d0, ks);
        __syncthreads();
        const int depth = D % slice == 0 ? slice : min(slice, D - d0);
#pragma unroll 8
        for (int d = 0; d < depth; ++d) {
          float k = ks[d * (KB + 1) + key];
#pragma unroll
          for (int i = 0; i < score_rows; ++i)
            acc[i] = fmaf(qs[(d0 + d) * R + score_row + i], k, acc[i]);
        }
      }
#pragma unroll
      for (int i = 0; i < score_rows; ++i) {
        int r = score_row + i;
        float s = -infinity();
        if (r < rows.count && sees<A>(rows.visible(r), base + key))
          s = a.score(acc[i], rows.head(r), rows.query(r), base + key,
                      rows.mask_row(r));
        ss[key * pitch + r] = s;
      }
      __syncthreads();
      softmax(shared);
      __syncthreads();
      if (writes) {
#pragma unroll
        for (int i = 0; i < out_rows; ++i)
          if (out_row + i < R)
            o[i] *= factors[out_row + i];
        for (int j = 0; j < count; ++j) {
          float v = keys.value(j, channel);
#pragma unroll
          for (int i = 0; i < out_rows; ++i)
            if (out_row + i < R)
              o[i] = fmaf(ss[j * pitch + out_row + i], v, o[i]);
        }
      }
    }
    __syncthreads();
    if (writes)
#pragma unroll
      for (int i = 0; i < out_rows; ++i)
        if (out_row + i < rows.count) {
          float l = sums[out_row + i];
          out[rows.place(out_row + i) * D + channel] =
              narrow<O>(o[i] * (l == 0.0f ? 0.0f : 1.0f / l));
        }
  }
};

} // namespace gptc
