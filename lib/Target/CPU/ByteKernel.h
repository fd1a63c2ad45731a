//===- ByteKernel.h - GEMM of bytes -----------------------------*- C++ -*-===//
//
// Rows are quantised to int8 when the kernel runs: x ~ scale * q, scale the
// largest magnitude / 127, q rounded to nearest, ties to even. Weights are
// uint8 codes: w = d * (code - zero) + m. Products of codes and q are summed
// exactly in 32 bits:
//   i8x4           one scale a row; the sums, in i32, are scaled at the end
//   q8_0x4, q4_0, q4_1   a scale for every 32 k of a row, as ggml's Q8_1; an
//                  element is one chain over the blocks: acc + d * scale * sum,
//                  for q4_1 then + m * scale * (sum of q)
// A row that is not finite gives NaN.
//
// A row of A: for i8x4 words of four q up to a multiple of 16 k, its scale
// (f32), -128 * sum of q (i32). For blocks, of each: 8 words of four q (q4: of
// every 8 k, the even then the odd ones, as a word of nibbles falls apart),
// scale, and -zero * sum (i32), for q4_1 scale * sum (f32).
//
//===----------------------------------------------------------------------===//
#pragma once
#include "MicroKernel.h"

namespace gptc::cpu {

/// Whether weights lie as such codes.
bool isOfBytes(gpt::Storage storage);

/// Words of a row of A of k input features.
int64_t byteRowWords(gpt::Storage storage, int64_t k);
/// The first word of input features from k0 on, a multiple of 32.
Value byteRowWord(Emitter &e, gpt::Storage storage, Value k0);
/// Rows of a panel for `depth` input features: words of four, or blocks.
Value byteSteps(Emitter &e, gpt::Storage storage, Value depth);

/// to = from[K] f32 quantised.
void callQuantizeRow(Emitter &e, gpt::Storage storage, Value from, Value to,
                     int64_t k);

/// As callMicroKernel where m.bytes: o.k counts steps, o.a is words; C is i32
/// for i8x4.
void callByteKernel(Emitter &e, const MicroKernel &m, const MicroOperands &o);

/// C, i32, becomes f32: what a panel of i8x4 and rows of A give.
struct ByteScales {
  Value rows;      ///< how many
  Value row;       ///< address of the first row's scale
  int64_t rowStep; ///< bytes to the next row's
  int64_t sumStep; ///< bytes from a row's scale to its sum
  Value panel;     ///< address of the panel's scales
  Value c;
  int64_t ldc; ///< elements
};
void callScaleBytes(Emitter &e, const ByteScales &s);

} // namespace gptc::cpu
