//===- layout.cuh - heads, splits, rotations, the cache, unfused ----------===//
#pragma once
#include "kv.cuh"

namespace gptc {

/// One thread a number of split [B][H][T][D]; merged is [B][T][H][D].
template <int Threads, bool ToSplit>
__device__ void move_heads(const float *from, float *to, long long batch,
                           long long heads, long long tokens, long long d) {
  long long e = (long long)blockIdx.x * Threads + threadIdx.x;
  if (e >= batch * heads * tokens * d)
    return;
  long long i = e % d, t = e / d % tokens, h = e / d / tokens % heads;
  long long b = e / d / tokens / heads;
  long long merged = ((b * tokens + t) * heads + h) * d + i;
  if (ToSplit)
    to[e] = from[merged];
  else
    to[merged] = from[e];
}

/// Columns [from, from + count) of rows of n.
template <int Threads>
__device__ void split_part(const float *x, float *out, long long rows, int n,
                           int from, int count) {
  long long e = (long long)blockIdx.x * Threads + threadIdx.x;
  if (e < rows * count)
    out[e] = x[e / count * n + from + e % count];
}

/// x [rows][D], row r at token r % tokens; one thread a number.
template <int Threads, int D, int Rotary, bool Half>
__device__ void rotate(const float *x, const float *table, float *out,
                       long long rows, long long tokens) {
  long long e = (long long)blockIdx.x * Threads + threadIdx.x;
  if (e >= rows * D)
    return;
  int i = int(e % D);
  if (i >= Rotary) {
    out[e] = x[e];
    return;
  }
  int partner = !Half            ? (i ^ 1)
                : i < Rotary / 2 ? i + Rotary / 2
                                 : i - Rotary / 2;
  const float *row = table + e / D % tokens * 2 * D;
  out[e] = fmaf(x[e - i + partner], row[D + i], x[e] * row[i]);
}

/// keys and values [heads][tokens][D] into the cache; one thread a channel.
template <int Threads, class C>
__device__ void kv_append(const gptc_kv_view *view, const float *keys,
                          const float *values, const int *positions,
                          const int *sequences, long long tokens) {
  long long e = (long long)blockIdx.x * Threads + threadIdx.x;
  if (e >= tokens * C::heads * C::head)
    return;
  int column = int(e % (C::heads * C::head));
  long long t = e / (C::heads * C::head);
  long long from = (column / C::head * tokens + t) * C::head + column % C::head;
  C::template append<true>(view, sequences[t], positions[t], column,
                           keys[from]);
  C::template append<false>(view, sequences[t], positions[t], column,
                            values[from]);
}

/// The first `count` positions of the one sequence that an unfused step runs.
template <int Threads, class C>
__device__ void kv_read(const gptc_kv_view *view, float *keys, float *values,
                        long long count) {
  long long e = (long long)blockIdx.x * Threads + threadIdx.x;
  if (e >= C::heads * count * C::head)
    return;
  int d = int(e % C::head), h = int(e / C::head / count);
  long long s = e / C::head % count;
  const typename C::E *block =
      C::at(view, view->runs[0].sequence, s / C::page, h);
  int slot = int(s % C::page);
  keys[e] = widen(block[(long long)d * C::page + slot]);
  values[e] = widen(C::values(block)[(long long)slot * C::pitch + d]);
}

} // namespace gptc
