//===- argmax.cuh - the index of the largest number of a row --------------===//
//
// Of equal numbers the lowest index; a NaN is below every number. The order is
// total, so it does not matter how threads meet.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "common.cuh"

namespace gptc {

struct Best {
  float value;
  int index;
  /// Takes (v, i) if it comes first: larger, or equal (or both NaN) at a lower
  /// index.
  __device__ void take(float v, int i) {
    bool above = v > value || (v == v && value != value);
    bool below = v < value || (v != v && value == value);
    if (above || (!below && i < index)) {
      value = v;
      index = i;
    }
  }
};

/// Behind every number and NaN of a row.
__device__ inline Best no_best() {
  return {__int_as_float(0x7fc00000), 0x7fffffff};
}

/// Every lane gets the best of the warp.
__device__ inline Best warp_best(Best best) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    float v = __shfl_xor_sync(0xffffffffu, best.value, distance);
    int i = __shfl_xor_sync(0xffffffffu, best.index, distance);
    best.take(v, i);
  }
  return best;
}

/// Of a row of n, n > 0; thread 0 gets it.
template <int Threads> __device__ Best row_best(const float *row, long long n) {
  __shared__ float values[Threads / 32];
  __shared__ int indices[Threads / 32];
  Best best = no_best();
  for (long long c = threadIdx.x; c < n; c += Threads)
    best.take(row[c], int(c));
  best = warp_best(best);
  if (threadIdx.x % 32 == 0) {
    values[threadIdx.x / 32] = best.value;
    indices[threadIdx.x / 32] = best.index;
  }
  __syncthreads();
  if (threadIdx.x == 0)
    for (int warp = 1; warp < Threads / 32; ++warp)
      best.take(values[warp], indices[warp]);
  return best;
}

/// One block a row of x [..][n].
template <int Threads>
__device__ void argmax(const float *x, int *out, long long n) {
  Best best = row_best<Threads>(x + blockIdx.x * n, n);
  if (threadIdx.x == 0)
    out[blockIdx.x] = best.index;
}

/// One block a row of [..][n] blocks: their largest numbers and the columns of
/// these.
template <int Threads>
__device__ void merge_argmax(const float *values, const int *columns, int *out,
                             long long n) {
  Best best = row_best<Threads>(values + blockIdx.x * n, n);
  if (threadIdx.x == 0)
    out[blockIdx.x] = columns[blockIdx.x * n + best.index];
}

} // namespace gptc
