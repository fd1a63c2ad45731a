// Ops with a rounding mode other than to nearest, or with .ftz, run with the
// processor's own modes set: run is inMode, inner does the work.
#ifndef GPTC_CUDA_EMULATOR_EXEC_ENVIRONMENT_H
#define GPTC_CUDA_EMULATOR_EXEC_ENVIRONMENT_H

#include "../Machine.h"

#include <cfenv>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace emu::EMU_LEVEL {

inline Flow inMode(Warp &w, const Op &op, uint32_t mask) {
#if defined(__x86_64__)
  unsigned before = _mm_getcsr(), mode = 0x1f80;
  static constexpr unsigned roundings[] = {0, 0x6000, 0x2000, 0x4000};
  mode |= roundings[static_cast<int>(op.rounding)];
  if (op.flush)
    mode |= 0x8040;
  _mm_setcsr(mode);
  Flow flow = op.inner(w, op, mask);
  _mm_setcsr(before);
#elif defined(__aarch64__)
  uint64_t before, mode;
  static constexpr uint64_t roundings[] = {0, 3u << 22, 2u << 22, 1u << 22};
  asm volatile("mrs %0, fpcr" : "=r"(before));
  mode = roundings[static_cast<int>(op.rounding)];
  if (op.flush)
    mode |= 1u << 24;
  asm volatile("msr fpcr, %0" : : "r"(mode));
  Flow flow = op.inner(w, op, mask);
  asm volatile("msr fpcr, %0" : : "r"(before));
#else
#error "expected x86-64 or AArch64"
#endif
  return flow;
}

// Reads the modes of a statement and wraps the op where it needs them.
inline void setMode(const Statement &s, Op &op) {
  if (s.has("rz"))
    op.rounding = Rounding::Zero;
  else if (s.has("rm"))
    op.rounding = Rounding::Down;
  else if (s.has("rp"))
    op.rounding = Rounding::Up;
  op.flush = s.has("ftz");
  if (op.rounding == Rounding::Nearest && !op.flush)
    return;
  op.inner = op.run;
  op.run = inMode;
}

} // namespace emu::EMU_LEVEL

#endif // GPTC_CUDA_EMULATOR_EXEC_ENVIRONMENT_H
