// How handlers go over the lanes of a warp. These files are compiled once for
// each level of vector instructions, in a namespace of that level; results do
// not depend on the level.
#ifndef GPTC_CUDA_EMULATOR_EXEC_LANES_H
#define GPTC_CUDA_EMULATOR_EXEC_LANES_H

#include "../Builder.h"

#ifndef EMU_LEVEL
#define EMU_LEVEL base
#endif

namespace emu::EMU_LEVEL {

// Families: each fills in an op for the statements it knows.
bool buildInteger(Builder &, const Statement &, Op &);
bool buildBits(Builder &, const Statement &, Op &);
bool buildFloat(Builder &, const Statement &, Op &);
bool buildHalf(Builder &, const Statement &, Op &);
bool buildApprox(Builder &, const Statement &, Op &);
bool buildConvert(Builder &, const Statement &, Op &);
bool buildCompare(Builder &, const Statement &, Op &);
bool buildMove(Builder &, const Statement &, Op &);
bool buildMemory(Builder &, const Statement &, Op &);
bool buildAtomic(Builder &, const Statement &, Op &);
bool buildCopy(Builder &, const Statement &, Op &);
bool buildWarp(Builder &, const Statement &, Op &);
bool buildMatrix(Builder &, const Statement &, Op &);
bool buildMatrixMemory(Builder &, const Statement &, Op &);
bool buildControl(Builder &, const Statement &, Op &);

// d[i] = f(i) for the lanes of the mask; parts: elements of a lane.
template <int parts = 1, class D, class F>
inline void each(D *d, uint32_t mask, F f) {
  if (mask == allLanes) {
#pragma clang loop vectorize(assume_safety)
    for (int i = 0; i < 32 * parts; ++i)
      d[i] = f(i);
  } else {
#pragma clang loop vectorize(assume_safety)
    for (int i = 0; i < 32 * parts; ++i)
      d[i] = (mask >> (i / parts) & 1) ? f(i) : d[i];
  }
}

// A predicate of all lanes.
template <class F> inline uint32_t bitsWhere(F f) {
  uint32_t bits = 0;
  for (int i = 0; i < 32; ++i)
    bits |= uint32_t(f(i)) << i;
  return bits;
}

inline void setPred(Warp &w, int32_t at, uint32_t mask, uint32_t value) {
  uint32_t *to = w.out<uint32_t>(at);
  *to = (*to & ~mask) | (value & mask);
}

template <class F, class D, class A = D, int parts = 1>
Flow unary(Warp &w, const Op &op, uint32_t mask) {
  const A *a = w.in<A>(op.a);
  each<parts>(w.out<D>(op.d), mask, [=](int i) -> D { return F::run(a[i]); });
  return Flow::Next;
}

template <class F, class D, class A = D, class B = A, int parts = 1>
Flow binary(Warp &w, const Op &op, uint32_t mask) {
  const A *a = w.in<A>(op.a);
  const B *b = w.in<B>(op.b);
  each<parts>(w.out<D>(op.d), mask,
              [=](int i) -> D { return F::run(a[i], b[i]); });
  return Flow::Next;
}

template <class F, class D, class A = D, class B = A, class C = D,
          int parts = 1>
Flow ternary(Warp &w, const Op &op, uint32_t mask) {
  const A *a = w.in<A>(op.a);
  const B *b = w.in<B>(op.b);
  const C *c = w.in<C>(op.c);
  each<parts>(w.out<D>(op.d), mask,
              [=](int i) -> D { return F::run(a[i], b[i], c[i]); });
  return Flow::Next;
}

// f of each lane of the mask, one after the other.
template <class F> inline void forLanes(uint32_t mask, F f) {
  for (uint32_t rest = mask; rest; rest &= rest - 1)
    f(uint32_t(__builtin_ctz(rest)));
}

} // namespace emu::EMU_LEVEL

#endif // GPTC_CUDA_EMULATOR_EXEC_LANES_H
