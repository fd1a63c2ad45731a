//===- elements.cuh - how numbers lie in memory ---------------------------===//
//
// Elements are float, Bf16 and F16. widen() gives the f32, exactly; narrow()
// rounds to the nearest, ties to even; pack() rounds two to one register, the
// first to the low half.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "common.cuh"

namespace gptc {

struct Bf16 {
  unsigned short bits;
};
struct F16 {
  unsigned short bits;
};

template <class A, class B> inline constexpr bool is_same = false;
template <class A> inline constexpr bool is_same<A, A> = true;

__device__ inline float widen(float v) { return v; }
__device__ inline float widen(Bf16 v) { return bf16_to_f32(v.bits); }
__device__ inline float widen(F16 v) { return f16_to_f32(v.bits); }

/// Through the cache of what does not change.
__device__ inline float load(const float *p) { return __ldg(p); }
template <class E> __device__ E load(const E *p) { return E{__ldg(&p->bits)}; }

template <class E> __device__ E narrow(float v) {
  if constexpr (is_same<E, float>) {
    return v;
  } else {
    E d;
    if constexpr (is_same<E, Bf16>)
      asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(d.bits) : "f"(v));
    else
      asm("cvt.rn.f16.f32 %0, %1;" : "=h"(d.bits) : "f"(v));
    return d;
  }
}

template <class E> __device__ unsigned pack(float lo, float hi) {
  unsigned d;
  if constexpr (is_same<E, Bf16>)
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(hi), "f"(lo));
  else
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(d) : "f"(hi), "f"(lo));
  return d;
}

} // namespace gptc
