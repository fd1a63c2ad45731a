//===- CudaSchedule.h - tile sizes of CUDA kernels --------------*- C++ -*-===//
//
// Pure functions from shapes, precision and the target to tile sizes, and their
// form as the `schedule` attribute of gpt.kernel. Sizes are in elements. The
// generated text asserts that its templates take the shared memory counted
// here.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "gptc/Kernel/KernelGemm.h"
#include "gptc/Schedule/CudaTarget.h"

namespace gptc {

/// Output features of a weight panel (Format/WeightLayout.h).
constexpr int64_t cudaPanel = 16;

/// A GEMM: a block computes rows x columns of each lane, K in steps of `depth`
/// through `stages` buffers. Up to fewRows rows have a kernel of their own,
/// whose blocks take fewColumns.
struct CudaGemmSchedule {
  int64_t rows = 0;    ///< fewRows: no tile holds a head, or a block of an
                       ///< argmax, so there is no other kernel than that of
                       ///< few rows
  int64_t columns = 0; ///< of a lane; whole heads, blocks and panels
  int64_t depth = 0;
  int64_t stages = 0;
  int64_t fewRows = 0;
  int64_t fewColumns = 0;
  bool tiled() const { return rows > fewRows; }
};

/// Attention: a block takes rows x keys. Up to fewTokens tokens, the pages of a
/// sequence are cut over `splits` blocks, which take splitHeads query heads.
struct CudaAttentionSchedule {
  int64_t rows = 0; ///< (token, query head of a KV head)
  int64_t keys = 0; ///< divides the cache's page, in order
  int64_t fewTokens = 0;
  int64_t splits = 0;
  int64_t splitHeads = 0;
};

CudaGemmSchedule scheduleCudaGemm(const KernelGemm &gemm,
                                  InputPrecision precision,
                                  const CudaTarget &target);
CudaAttentionSchedule scheduleCudaAttention(gpt::FlashAttentionOp op,
                                            InputPrecision precision,
                                            const CudaTarget &target);
/// Threads of a block that works through a row of n numbers.
int64_t scheduleCudaRow(int64_t n);

/// Whether the kernel's CUDA text can read an argument, or write a result
/// (numbered behind the arguments), in the element of a 16-bit precision.
bool canBeNarrow(gpt::KernelOp kernel, unsigned value);

/// Bytes of shared memory of a block.
int64_t cudaGemmShared(const CudaGemmSchedule &s, int64_t lanes,
                       InputPrecision precision);
int64_t cudaFewRowsShared(const CudaGemmSchedule &s, const KernelGemm &gemm,
                          int64_t rows);
int64_t cudaAttentionShared(const CudaAttentionSchedule &s, int64_t head,
                            InputPrecision precision);
int64_t cudaSplitShared(const CudaAttentionSchedule &s, int64_t head);

/// The kernel's schedule attribute, or none if the kernel needs no schedule.
mlir::DictionaryAttr cudaScheduleOf(gpt::KernelOp kernel,
                                    InputPrecision precision,
                                    const CudaTarget &target);

/// Checks the attribute against the target's limits; a message says the limit
/// and what was found.
mlir::LogicalResult verifyCudaSchedule(gpt::KernelOp kernel,
                                       InputPrecision precision,
                                       const CudaTarget &target);

/// Reads a verified attribute.
CudaGemmSchedule readCudaGemmSchedule(gpt::KernelOp kernel);
CudaAttentionSchedule readCudaAttentionSchedule(gpt::KernelOp kernel);

} // namespace gptc
