//===- attention_mma.cuh - flash attention on tensor cores ----------------===//
//
// As attention.cuh, with q, k, v and the probabilities rounded to bf16 or f16
// and sums in f32. Four warps take 16 rows each (the layout of mma.sync
// m16n8k16): a thread holds scores and outputs of the rows lane / 4 and
// lane / 4 + 8, and the accumulators of the scores are, rounded, the left
// operand of the product with the values (Dao, arXiv:2307.08691).
//
// Shared memory: q [64][DP], keys [DP][KB], values [KB][DP], DP the head size
// in whole steps of 16, zero-padded. Rows are 16 bytes longer than that, an odd
// number of 16-byte chunks, so that the eight rows of a matrix lie in different
// banks.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "attention_rows.cuh"
#include "math.cuh"
#include "mma.cuh"

namespace gptc {

template <class E, int KB_, int D_> struct MmaAttentionTile {
  static constexpr int threads = 128, R = 64, KB = KB_, D = D_;
  static constexpr int DP = (D + 15) / 16 * 16;
  static constexpr int q_pitch = DP * 2 + 16, k_pitch = KB * 2 + 16; // bytes
  static constexpr int q_at = 0, k_at = R * q_pitch;
  static constexpr int v_at = k_at + DP * k_pitch;
  static constexpr int shared = v_at + KB * q_pitch;

  __device__ static void put(unsigned char *to, float lo, float hi) {
    *reinterpret_cast<unsigned *>(to) = pack<E>(lo, hi);
  }

  /// Cached keys and values of the tile's own element lie as shared memory has
  /// them and are copied; others are rounded on their way through registers.
  template <class Keys>
  static constexpr bool copied =
      Keys::by_channel &&is_same<typename Keys::E, E>;

  /// Begins to bring a block's keys; zeros past its keys and channels.
  template <class Keys>
  __device__ static void bring_keys(const Keys &keys, int count,
                                    unsigned char *shared) {
    if constexpr (copied<Keys>) {
      for (int e = threadIdx.x; e < DP * KB / 8; e += threads) {
        int d = e / (KB / 8), j = e % (KB / 8) * 8;
        bool inside = d < D && j < count;
        copy_async(shared + k_at + d * k_pitch + j * 2,
                   keys.key_at(inside ? j : 0, inside ? d : 0), inside);
      }
      commit_copies();
    } else {
      for (int e = threadIdx.x; e < DP * KB / 2; e += threads) {
        int d = Keys::by_channel ? e / (KB / 2) : e % DP;
        int j = (Keys::by_channel ? e % (KB / 2) : e / DP) * 2;
        put(shared + k_at + d * k_pitch + j * 2,
            d < D && j < count ? keys.key(j, d) : 0.0f,
            d < D && j + 1 < count ? keys.key(j + 1, d) : 0.0f);
      }
    }
  }
  /// Likewise the values. What lies in the cache past the channels is 0.
  template <class Keys>
  __device__ static void bring_values(const Keys &keys, int count,
                                      unsigned char *shared) {
    if constexpr (copied<Keys>) {
      for (int e = threadIdx.x; e < KB * DP / 8; e += threads) {
        int d = e % (DP / 8) * 8, j = e / (DP / 8);
        copy_async(shared + v_at + j * q_pitch + d * 2,
                   keys.value_at(j < count ? j : 0, d), j < count);
      }
      commit_copies();
    } else {
      for (int e = threadIdx.x; e < KB * DP / 2; e += threads) {
        int d = e % (DP / 2) * 2, j = e / (DP / 2);
        put(shared + v_at + j * q_pitch + d * 2,
            d < D && j < count ? keys.value(j, d) : 0.0f,
            d + 1 < D && j < count ? keys.value(j, d + 1) : 0.0f);
      }
    }
  }

  /// Queries of the tile; zeros past its rows and channels.
  template <class Rows, class Q>
  __device__ static void bring_queries(const Rows &rows, const Q *q,
                                       unsigned char *shared) {
    constexpr bool copied = is_same<Q, E> && D % 8 == 0;
    constexpr int width = copied ? 8 : 2; // channels at a time
    for (int e = threadIdx.x; e < R * DP / width; e += threads) {
      int d = e % (DP / width) * width, r = e / (DP / width);
      const Q *from = q + (r < rows.count ? rows.place(r) * D : 0);
      unsigned char *to = shared + q_at + r * q_pitch + d * 2;
      bool inside = d < D && r < rows.count;
      if constexpr (copied)
        copy_async(to, inside ? from + d : q, inside);
      else
        put(to, inside ? widen(from[d]) : 0.0f,
            inside && d + 1 < D ? widen(from[d + 1]) : 0.0f);
    }
    commit_copies();
  }

  template <class A, class Keys, class Rows, class Q, class O>
  __device__ static void run(const A &a, Keys keys, const Rows &rows,
                             const Q *q, O *out, float *memory) {
    auto shared = reinterpret_cast<unsigned char *>(memory);
    const int lane = threadIdx.x % 32, row0 = threadIdx.x / 32 * 16;
    __syncthreads();
    bring_queries(rows, q, shared);
    // The thread's two rows.
    long long visible[2], query[2];
    typename A::MaskRow mask_row[2];
    int head[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      int r = row0 + lane / 4 + 8 * h;
      bool inside = r < rows.count;
      visible[h] = inside ? rows.visible(r) : 0;
      query[h] = inside ? rows.query(r) : 0;
      head[h] = inside ? rows.head(r) : 0;
      mask_row[h] = inside ? rows.mask_row(r) : typename A::MaskRow{};
    }
    float maximum[2] = {-infinity(), -infinity()}, sum[2] = {};
    float o[DP / 8][4] = {};

    const long long most = rows.visible(rows.count - 1);
    auto count = [&](long long base) {
      return int(min((long long)KB, most - base));
    };
    const long long first = first_block<A>(rows.visible(0), KB) * KB;
    keys.seek(first);
    bring_keys(keys, count(first), shared);
    // Values arrive during the scores, the next keys during the outputs.
    for (long long base = first; base < most; base += KB) {
      wait_for_copies<0>();
      __syncthreads();
      bring_values(keys, count(base), shared);
      float s[KB / 8][4] = {};
#pragma unroll
      for (int d = 0; d < DP; d += 16) {
        unsigned x[4];
        ldmatrix(x, shared + q_at + (row0 + lane % 16) * q_pitch + d * 2 +
                        lane / 16 * 16);
#pragma unroll
        for (int j = 0; j < KB; j += 16) {
          unsigned y[4];
          ldmatrix_transposed(y, shared + k_at + (d + lane % 16) * k_pitch +
                                     j * 2 + lane / 16 * 16);
          mma(E(), s[j / 8], x, y[0], y[1]);
          mma(E(), s[j / 8 + 1], x, y[2], y[3]);
        }
      }
      softmax(a, s, base, visible, query, head, mask_row, maximum, sum, o);
      wait_for_copies<0>();
      __syncthreads();
      if (base + KB < most) {
        keys.seek(base + KB);
        bring_keys(keys, count(base + KB), shared);
      }
#pragma unroll
      for (int j = 0; j < KB; j += 16) {
        const float(&p)[4] = s[j / 8], (&p2)[4] = s[j / 8 + 1];
        unsigned x[4] = {pack<E>(p[0], p[1]), pack<E>(p[2], p[3]),
                         pack<E>(p2[0], p2[1]), pack<E>(p2[2], p2[3])};
#pragma unroll
        for (int d = 0; d < DP; d += 16) {
          unsigned y[4];
          ldmatrix_transposed(y, shared + v_at + (j + lane % 16) * q_pitch +
                                     d * 2 + lane / 16 * 16);
          mma(E(), o[d / 8], x, y[0], y[1]);
          mma(E(), o[d / 8 + 1], x, y[2], y[3]);
        }
      }
    }
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      int r = row0 + lane / 4 + 8 * h;
      // The four lanes of a row have its columns.
      float l = sum[h];
      l += __shfl_xor_sync(0xffffffffu, l, 1);
      l += __shfl_xor_sync(0xffffffffu, l, 2);
      float inverse = l == 0.0f ? 0.0f : 1.0f / l;
      if (r >= rows.count)
        continue;
      O *to = out + rows.place(r) * D;
#pragma unroll
      for (int i = 0; i < DP / 8; ++i) {
        int d = i * 8 + lane % 4 * 2;
        if constexpr (is_same<O, E> && D % 2 == 0) {
          if (d < D)
            put(reinterpret_cast<unsigned char *>(to + d),
                o[i][2 * h] * inverse, o[i][2 * h + 1] * inverse);
          continue;
        }
        if (d < D)
          to[d] = narrow<O>(o[i][2 * h] * inverse);
        if (d + 1 < D)
          to[d + 1] = narrow<O>(o[i][2 * h + 1] * inverse);
      }
    }
  }

  /// Scores become probabilities of a new maximum; outputs and sums (the
  /// thread's own) follow.
  template <class A>
  __device__ static void
  softmax(const A &a, float (&s)[KB / 8][4], long long base,
          const long long (&visible)[2], const long long (&query)[2],
          const int (&head)[2], const typename A::MaskRow (&mask_row)[2],
          float (&maximum)[2], float (&sum)[2], float (&o)[DP / 8][4]) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      float best = -infinity();
#pragma unroll
      for (int j = 0; j < KB / 8; ++j)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          long long key = base + j * 8 + lane % 4 * 2 + i;
          float &v = s[j][2 * h + i];
          v = sees<A>(visible[h], key)
                  ? a.score(v * A::scale, head[h], query[h], key, mask_row[h])
                  : -infinity();
          best = fmaxf(best, v);
        }
      best = fmaxf(best, __shfl_xor_sync(0xffffffffu, best, 1));
      best = fmaxf(best, __shfl_xor_sync(0xffffffffu, best, 2));
      float m = fmaxf(maximum[h], best);
      // A row that has seen no key yet: any finite reference will do.
      float reference = m == -infinity() ? 0.0f : m;
      float factor = exp_f32(maximum[h] - reference), l = 0;
#pragma unroll
      for (int j = 0; j < KB / 8; ++j)
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          float &v = s[j][2 * h + i];
          v = exp_f32(v - reference);
          l += v;
        }
      maximum[h] = m;
      sum[h] = fmaf(sum[h], factor, l);
#pragma unroll
      for (int i = 0; i < DP / 8; ++i) {
        o[i][2 * h] *= factor;
        o[i][2 * h + 1] *= factor;
      }
    }
  }
};

} // namespace gptc
