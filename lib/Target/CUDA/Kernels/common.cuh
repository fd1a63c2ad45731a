//===- common.cuh - reductions and words ----------------------------------===//
//
// Reductions add in one fixed order, whatever the other rows of a batch are:
// butterflies within a warp, then the warps one after another.
//
//===----------------------------------------------------------------------===//
#pragma once

namespace gptc {

__device__ inline float warp_sum(float v) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    v += __shfl_xor_sync(0xffffffffu, v, distance);
  return v;
}

__device__ inline float warp_max(float v) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, distance));
  return v;
}

/// Combines v over the block; every thread gets the result. `shared` has one
/// word a warp and may be used again at once.
template <int Threads, bool Sum>
__device__ float block_reduce(float v, float *shared) {
  v = Sum ? warp_sum(v) : warp_max(v);
  __syncthreads();
  if (threadIdx.x % 32 == 0)
    shared[threadIdx.x / 32] = v;
  __syncthreads();
  v = shared[0];
#pragma unroll
  for (int warp = 1; warp < Threads / 32; ++warp)
    v = Sum ? v + shared[warp] : fmaxf(v, shared[warp]);
  return v;
}
template <int Threads> __device__ float block_sum(float v, float *shared) {
  return block_reduce<Threads, true>(v, shared);
}
template <int Threads> __device__ float block_max(float v, float *shared) {
  return block_reduce<Threads, false>(v, shared);
}

__device__ inline float infinity() { return __int_as_float(0x7f800000); }

/// f32 of the bits of an f16 or a bf16.
__device__ inline float f16_to_f32(unsigned short bits) {
  float v;
  asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(bits));
  return v;
}
__device__ inline float bf16_to_f32(unsigned short bits) {
  return __uint_as_float(unsigned(bits) << 16);
}

} // namespace gptc
