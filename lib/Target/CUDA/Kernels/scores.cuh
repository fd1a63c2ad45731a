//===- scores.cuh - matmul and softmax of the unfused path ----------------===//
//
// Plain loops: this path is there to be compared with.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "common.cuh"
#include "math.cuh"

namespace gptc {

/// One thread an element of out [batch][M][N]: a [batch][M][K] times
/// b [batch / groups][K][N], or [N][K] if it is transposed.
template <int Threads, bool Transposed>
__device__ void matmul(const float *a, const float *b, float *out,
                       long long batch, long long m, long long k, long long n,
                       long long groups) {
  long long e = (long long)blockIdx.x * Threads + threadIdx.x;
  if (e >= batch * m * n)
    return;
  long long row = e / n, column = e % n;
  const float *x = a + row * k;
  const float *w =
      b + row / m / groups * k * n + (Transposed ? column * k : column);
  float sum = 0;
  for (long long i = 0; i < k; ++i)
    sum = fmaf(x[i], w[Transposed ? i : i * n], sum);
  out[e] = sum;
}

/// The largest number of the block's row of n.
template <int Threads>
__device__ float row_max(const float *row, long long n, float *shared) {
  float best = -infinity();
  for (long long c = threadIdx.x; c < n; c += Threads)
    best = row[c] > best ? row[c] : best;
  return block_max<Threads>(best, shared);
}

/// One block a row of n. A row of -inf becomes 0.
template <int Threads>
__device__ void softmax(const float *x, float *out, long long n) {
  __shared__ float shared[Threads / 32];
  const float *row = x + blockIdx.x * n;
  float *to = out + blockIdx.x * n;
  float best = row_max<Threads>(row, n, shared), sum = 0;
  bool hidden = best == -infinity();
  float reference = hidden ? 0.0f : best;
  for (long long c = threadIdx.x; c < n; c += Threads) {
    float p = exp_f32(row[c] - reference);
    to[c] = p;
    sum += p;
  }
  sum = block_sum<Threads>(sum, shared);
  float inverse = hidden ? 0.0f : 1.0f / sum;
  for (long long c = threadIdx.x; c < n; c += Threads)
    to[c] *= inverse;
}

/// One block a row of n. A row of -inf stays one: log_f32(0) is finite.
template <int Threads>
__device__ void log_softmax(const float *x, float *out, long long n) {
  __shared__ float shared[Threads / 32];
  const float *row = x + blockIdx.x * n;
  float *to = out + blockIdx.x * n;
  float best = row_max<Threads>(row, n, shared), sum = 0;
  float reference = best == -infinity() ? 0.0f : best;
  for (long long c = threadIdx.x; c < n; c += Threads)
    sum += exp_f32(row[c] - reference);
  float logarithm = log_f32(block_sum<Threads>(sum, shared));
  for (long long c = threadIdx.x; c < n; c += Threads)
    to[c] = row[c] - reference - logarithm;
}

} // namespace gptc
