//===- mma.cuh - tensor cores, ldmatrix and asynchronous copies -----------===//
//
// Thin wrappers of the PTX instructions of sm_80 (PTX ISA, "Warp Level Matrix
// Instructions"). Elements are pairs in 32-bit registers.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "elements.cuh"
#include "weights.cuh"

namespace gptc {

/// What tensor cores take as it is stored.
template <class E> __host__ __device__ constexpr bool is_stored_as(Format f) {
  return (is_same<E, Bf16> && f == Format::bf16) ||
         (is_same<E, F16> && f == Format::f16);
}

/// d += a b of m16n8k16 with f32 sums.
__device__ inline void mma(Bf16, float (&d)[4], const unsigned (&a)[4],
                           unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
               "{%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ inline void mma(F16, float (&d)[4], const unsigned (&a)[4],
                           unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
               "{%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// f32 of 10 bits behind the point, in a word: what a GEMM's inputs become in
/// shared memory. Ties are rounded away from zero.
struct Tf32 {
  unsigned bits;
};
__device__ inline unsigned to_tf32(float v) {
  unsigned d;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(d) : "f"(v));
  return d;
}
/// d += a b of m16n8k8.
__device__ inline void mma(Tf32, float (&d)[4], const unsigned (&a)[4],
                           unsigned b0, unsigned b1) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
               "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
               "{%0, %1, %2, %3};"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ inline unsigned shared_address(const void *p) {
  return unsigned(__cvta_generic_to_shared(p));
}

/// Four 8x8 matrices of 16-bit elements; lane l gives the address of row l % 8
/// of matrix l / 8.
__device__ inline void ldmatrix(unsigned (&r)[4], const void *row) {
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
      : "r"(shared_address(row))
      : "memory");
}
__device__ inline void ldmatrix_transposed(unsigned (&r)[4], const void *row) {
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
      : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
      : "r"(shared_address(row))
      : "memory");
}

/// Copies 16 bytes without passing through registers; zeros if not `inside`.
__device__ inline void copy_async(void *to, const void *from, bool inside) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(shared_address(to)), "l"(from), "r"(inside ? 16 : 0)
               : "memory");
}
__device__ inline void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
/// Waits until at most `Pending` groups of copies are under way.
template <int Pending> __device__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
}

} // namespace gptc
