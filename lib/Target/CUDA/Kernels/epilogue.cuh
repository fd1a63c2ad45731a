//===- epilogue.cuh - from a tile of accumulators to results --------------===//
//
// What the main loops do with rows of a tile that lie in shared memory. A
// section S has: k, features, lanes, argmax, formats[lanes], weights[lanes] and
//   template <int Pitch> void operator()(const float *acc, row, column) const
// which takes the accumulator of lane l at acc[l * Pitch] and writes results.
// With argmax B it returns the value instead; the largest of each B columns
// goes to
//   void keep(row, block, Best best) const
//
//===----------------------------------------------------------------------===//
#pragma once
#include "argmax.cuh"

namespace gptc {

/// `count` rows of a tile, Pitch elements apart; row r is row `place(r)` of
/// all `rows` if that is below. A tile has whole blocks of an argmax, which a
/// warp each works through.
template <class T, int Pitch, class S, class Place>
__device__ void finish(const S &s, const float *tile, int count, Place place,
                       long long rows, int column0) {
  if constexpr (S::argmax == 0) {
    for (int e = threadIdx.x; e < count * T::BN; e += T::threads) {
      long long row = place(e / T::BN);
      int column = e % T::BN;
      if (row < rows && column0 + column < S::features)
        s.template operator()<T::BN>(tile + e / T::BN * Pitch + column, row,
                                     column0 + column);
    }
  } else {
    constexpr int blocks = T::BN / S::argmax;
    static_assert(blocks * S::argmax == T::BN);
    for (int e = threadIdx.x / 32; e < count * blocks; e += T::threads / 32) {
      long long row = place(e / blocks);
      int first = e % blocks * S::argmax;
      if (row >= rows || column0 + first >= S::features)
        continue;
      Best best = no_best();
      for (int c = first + threadIdx.x % 32; c < first + S::argmax; c += 32)
        if (column0 + c < S::features)
          best.take(s.template operator()<T::BN>(tile + e / blocks * Pitch + c,
                                                 row, column0 + c),
                    column0 + c);
      best = warp_best(best);
      if (threadIdx.x % 32 == 0)
        s.keep(row, (column0 + first) / S::argmax, best);
    }
  }
}

} // namespace gptc
