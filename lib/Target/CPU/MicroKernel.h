//===- MicroKernel.h - register tiles of a GEMM -----------------*- C++ -*-===//
//
// C[R][P * V vectors] (+)= A[R][K] * B, held in registers over the whole of K.
// Every element is one chain of multiply-adds over k = 0 .. K-1, in every
// variant: so bits do not depend on the tile that computed them.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "PackedElements.h"

namespace gptc::cpu {

struct MicroKernel {
  int64_t rows;        ///< R
  int64_t panels = 1;  ///< P panels, panelStride bytes apart
  int64_t vectors = 2; ///< vectors of a panel
  gpt::Storage storage = gpt::Storage::F32; ///< of B
  int64_t packedRows =
      0; ///< A is [K][packedRows]; 0: A is row-major with pitch lda
  int64_t repeat = 1; ///< so many words of packed A are the same number
  bool accumulate = false; ///< C is added to
  /// B is read once, from memory: prefetch it ahead of use. The hardware's
  /// streams stop at every page, after 4 KiB.
  bool stream = false;
  /// Rows are numbers of so many bytes: ByteKernel.h. With more than one, packed
  /// rows meet unpacked codes.
  int64_t digits = 0;
  /// Bytes from `next` on that each step of k brings to L2, where A is packed.
  int64_t ahead = 0;
};

/// Where B is bf16x2, k counts pairs, and A is pairs of bf16 as well if the
/// target multiplies them (bf16Dot), else f32 that are bf16 numbers, two of
/// `packedRows` a pair.
///
/// Addresses: A f32; B as in Format/WeightLayout.h (f32, f16, bf16 with ldb
/// elements between rows k); C f32 with pitch ldc, the panels' columns side by
/// side. lda, ldb, ldc in elements, panelStride in bytes. next: what is read
/// after these panels, or null.
struct MicroOperands {
  Value a, lda, b, panelStride, ldb, c, ldc, k, next;
  Values all() const {
    return {a, lda, b, panelStride, ldb, c, ldc, k, next ? next : b};
  }
  static MicroOperands from(ValueRange v) {
    return {v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8]};
  }
};
void callMicroKernel(Emitter &e, const MicroKernel &m, const MicroOperands &o);

/// Asks for `bytes` bytes from p on, a cache line at a time.
void prefetch(Emitter &e, Value p, int64_t bytes, int cacheLevel);

/// Where A is packed: asks for what step k brings to L2, and, before the first,
/// for the C of the rows that follow these.
void prefetchStep(Emitter &e, const MicroKernel &m, const MicroOperands &o,
                  Value k);
void prefetchNextC(Emitter &e, const MicroKernel &m, const MicroOperands &o);

/// If the panels are streamed, asks for a row ahead of row k, or for one of the
/// next panels where these end. `rowBytes` from one row to the next.
void prefetchAhead(Emitter &e, const MicroKernel &m, const MicroOperands &o,
                   Value k, int64_t rowBytes);

/// How rows are multiplied with weights of a storage.
struct ByteForm {
  gpt::Storage storage;
  int64_t digits; ///< rowDigits
};

/// The columns of as many vectors of words as each has lanes.
Values transposeWords(Emitter &e, Values rows);

/// The largest P of {4, 2, 1} whose accumulators fit the registers beside what
/// B needs.
int64_t panelsFor(const TargetDesc &t, int64_t rows, ByteForm form);

/// out[k][NR] f32 = the values of one packed panel; or, as bf16x2, rounded.
void callUnpackPanel(Emitter &e, gpt::Storage storage, Value panel, Value out,
                     Value k, gpt::Storage to);

/// to = from[K] f32 as a row of A for a kernel whose B is `storage`, with 0 up
/// to a whole vector.
void callCopyRow(Emitter &e, gpt::Storage storage, Value from, Value to,
                 int64_t k);

/// to[words][packedRows] = rows of `words` words, `pitch` words apart, each
/// `repeat` times in turn. Rows are read up to a whole vector; to[...] is written
/// up to a vector past its end.
void callPackRows(Emitter &e, int64_t packedRows, int64_t repeat, Value rows,
                  int64_t pitch, Value to, int64_t words);

} // namespace gptc::cpu
