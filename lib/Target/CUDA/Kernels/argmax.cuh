//===- argmax.cuh - the index of the largest number of a row --------------===//
//
// One block a row. Of equal numbers the lowest index; a NaN is below every
// number.
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

template <int Threads>
__device__ void argmax(const float *x, int *out, long long n) {
  __shared__ float values[Threads / 32];
  __shared__ int indices[Threads / 32];
  const float *row = x + blockIdx.x * n;
  Best best = {__int_as_float(0x7fc00000), 0x7fffffff};
  for (long long c = threadIdx.x; c < n; c += Threads)
    best.take(row[c], int(c));
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    float v = __shfl_xor_sync(0xffffffffu, best.value, distance);
    int i = __shfl_xor_sync(0xffffffffu, best.index, distance);
    best.take(v, i);
  }
  if (threadIdx.x % 32 == 0) {
    values[threadIdx.x / 32] = best.value;
    indices[threadIdx.x / 32] = best.index;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int warp = 1; warp < Threads / 32; ++warp)
      best.take(values[warp], indices[warp]);
    out[blockIdx.x] = best.index;
  }
}

} // namespace gptc
