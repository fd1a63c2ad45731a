//===- norm.cuh - layer_norm and rms_norm of rows -------------------------===//
//
// One block a row. beta null: 0. Results are narrowed to the element O.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "elements.cuh"

namespace gptc {

/// 1 / sqrt(sum / n + eps).
__device__ inline float inverse_root(float sum, int n, float eps) {
  return 1.0f / sqrtf(sum / float(n) + eps);
}

template <int Threads, int N, class O>
__device__ void rms_norm(const float *x, const float *gamma, float eps,
                         O *out) {
  __shared__ float shared[Threads / 32];
  const float *row = x + (long long)blockIdx.x * N;
  float sum = 0;
  for (int c = threadIdx.x; c < N; c += Threads)
    sum = fmaf(row[c], row[c], sum);
  float scale = inverse_root(block_sum<Threads>(sum, shared), N, eps);
  for (int c = threadIdx.x; c < N; c += Threads)
    out[(long long)blockIdx.x * N + c] = narrow<O>(row[c] * scale * gamma[c]);
}

/// `scale_of` makes of the sum of squared deviations what they are multiplied
/// with.
template <int Threads, int N, class O, class Scale>
__device__ void centred_norm(const float *x, const float *gamma,
                             const float *beta, Scale scale_of, O *out) {
  __shared__ float shared[Threads / 32];
  const float *row = x + (long long)blockIdx.x * N;
  float sum = 0;
  for (int c = threadIdx.x; c < N; c += Threads)
    sum += row[c];
  float mean = block_sum<Threads>(sum, shared) / float(N);
  sum = 0;
  for (int c = threadIdx.x; c < N; c += Threads)
    sum = fmaf(row[c] - mean, row[c] - mean, sum);
  float scale = scale_of(block_sum<Threads>(sum, shared));
  for (int c = threadIdx.x; c < N; c += Threads)
    out[(long long)blockIdx.x * N + c] = narrow<O>(
        fmaf((row[c] - mean) * scale, gamma[c], beta ? beta[c] : 0.0f));
}

template <int Threads, int N, class O>
__device__ void layer_norm(const float *x, const float *gamma,
                           const float *beta, float eps, O *out) {
  centred_norm<Threads, N>(
      x, gamma, beta, [=](float sum) { return inverse_root(sum, N, eps); },
      out);
}

/// 1 / (the sample standard deviation + eps).
template <int Threads, int N, class O>
__device__ void sample_norm(const float *x, const float *gamma,
                            const float *beta, float eps, O *out) {
  centred_norm<Threads, N>(
      x, gamma, beta,
      [=](float sum) { return 1.0f / (sqrtf(sum / float(N - 1)) + eps); }, out);
}

} // namespace gptc
