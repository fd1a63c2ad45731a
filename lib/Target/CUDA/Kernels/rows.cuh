//===- rows.cuh - embedding, chosen rows, rope tables ---------------------===//
#pragma once
#include "math.cuh"
#include "weights.cuh"

namespace gptc {

/// One block a token. Step entries have their ids checked by the runtime;
/// elsewhere an id outside the table makes its row NaN, never a stray read.
template <int Threads, Format F, int Rows, int N>
__device__ void embedding(const unsigned char *table, const int *ids,
                          float *out) {
  int id = ids[blockIdx.x];
  for (int c = threadIdx.x; c < N; c += Threads)
    out[(long long)blockIdx.x * N + c] = id >= 0 && id < Rows
                                             ? load_weight<F>(table, id, c, N)
                                             : __int_as_float(0x7fc00000);
}
/// One block a row.
template <int Threads, int N>
__device__ void select_rows(const float *x, const int *rows, float *out) {
  long long from = rows[blockIdx.x];
  for (int c = threadIdx.x; c < N; c += Threads)
    out[(long long)blockIdx.x * N + c] = x[from * N + c];
}

/// One block a token: cosines, then sines with the sign that the partner takes.
/// Channels from Rotary on do not rotate.
template <int Threads, int D, int Rotary, bool Half>
__device__ void rope_table(const int *positions, const double *frequencies,
                           float *out) {
  float *cosines = out + (long long)blockIdx.x * 2 * D, *sines = cosines + D;
  double position = positions[blockIdx.x];
  for (int i = threadIdx.x; i < Rotary / 2; i += Threads) {
    double s, c;
    sin_cos(position * frequencies[i], s, c);
    int first = Half ? i : 2 * i, second = first + (Half ? Rotary / 2 : 1);
    cosines[first] = cosines[second] = float(c);
    sines[first] = -float(s);
    sines[second] = float(s);
  }
  for (int i = Rotary + threadIdx.x; i < D; i += Threads) {
    cosines[i] = 1;
    sines[i] = 0;
  }
}

} // namespace gptc
