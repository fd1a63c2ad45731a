//===- ByteKernel.h - GEMM of bytes -----------------------------*- C++ -*-===//
//
// Numbers of rows become whole numbers of one to three bytes when the kernel
// runs, so that products with the weights' codes are summed exactly in 32 bits.
// Weights are uint8 codes: w = d * (code - zero) + m.
//
// One byte (int8): x ~ scale * q, scale the largest magnitude / 127, q rounded to
// nearest, ties to even.
//   i8x4           one scale a row; the sums, in i32, are scaled at the end
//   q8_0x4, q4_0, q4_1   a scale for every 32 k of a row, as ggml's Q8_1, whose
//                  last two bits are 0; an element is one chain over the blocks:
//                  acc + d * (scale * sum), for q4_1 then + m * scale * (sum of q).
//                  Sums start at the bits of 1.5 * 2^23 as an f32, whose last bit
//                  is worth 1. Read as an f32, times scale, less unit = 1.5 * 2^23
//                  * scale, they are scaled exactly, without a conversion.
// More digits, for blocks only: scale is the power of two with which the largest
// of 32 magnitudes is below 2^22 (three digits) or 2^14 (two), so x is off by at
// most 2^-22 or 2^-14 of the largest. q is written to the base of 256 in digits
// from -128 to 127; sums of a digit are joined with the next lower one's, times
// 256, as long as they fit 32 bits (digitGroups), then scaled as above.
// Two digits beside q4 (isTwelveBits): the largest is below 2^11, x off by at
// most 2^-11 of it. q is 16 * high + low, low from 0 to 15. Codes lie times 16
// as well, for the high digit, so that one sum takes both. It starts at the bits
// of unit, in which scale already is.
// A row that is not finite gives NaN (of blocks: in all columns), and so does one
// whose unit is none.
//
// A row of A: for i8x4 words of four q up to a multiple of 16 k, its scale
// (f32), -128 * sum of q (i32). For blocks, of each: for each digit, the highest
// first, 8 words of four k (q4: of every 8 k, the even then the odd ones, as a
// word of nibbles falls apart), then for each group its scale, and -zero * sum
// (i32), for q4_1 scale * sum (f32). Of one byte -unit stands between, of twelve
// bits unit for the scale; -zero * sum is then added to where the sums start.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "MicroKernel.h"

namespace gptc::cpu {

/// The code of 0, or of m.
int64_t zeroOf(gpt::Storage storage);
/// Codes of four bits.
bool isNibbles(gpt::Storage storage);
/// Whether weights lie as such codes.
bool isOfBytes(gpt::Storage storage);

/// Rows of two digits to the base of 16.
bool isTwelveBits(ByteForm form);
/// 1.5 * 2^23: the low bits of an f32 next to it are a whole number.
constexpr float wholeNumbers = 0x1.8p23f;
/// How many digits, from the highest on, are summed before they are scaled.
llvm::SmallVector<int64_t> digitGroups(ByteForm form);
/// Words of 32 k of a row of A.
int64_t blockWords(ByteForm form);
/// Words of a row of A of k input features.
int64_t byteRowWords(ByteForm form, int64_t k);
/// The first word of input features from k0 on, a multiple of 32.
Value byteRowWord(Emitter &e, ByteForm form, Value k0);
/// Rows of a panel for `depth` input features: words of four, or blocks.
Value byteSteps(Emitter &e, gpt::Storage storage, Value depth);

/// to = from[K] f32 as bytes.
void callQuantizeRow(Emitter &e, ByteForm form, Value from, Value to,
                     int64_t k);

/// Codes of word g of a vector of columns from `column` on, in a stored block.
Value codesAt(Emitter &e, gpt::Storage storage, Value block, int64_t g,
              int64_t column);
/// The scales of these columns of a stored block and their minimums, or null.
std::pair<Value, Value> scalesAt(Emitter &e, gpt::Storage storage, Value block,
                                 int64_t column);

/// Bytes of a block of nr columns whose codes lie unpacked: [8][nr] words of
/// four codes, of twelve bits before them the same times 16, then [nr] scales
/// and [nr] minimums, f32.
inline int64_t unpackedBlockBytes(ByteForm form, int64_t nr) {
  return nr * ((isTwelveBits(form) ? 64 : 32) + 8);
}
/// out = so many stored blocks of a panel, unpacked.
void callUnpackCodes(Emitter &e, ByteForm form, Value panel, Value out,
                     Value blocks);

/// As callMicroKernel where m.digits: o.k counts steps, o.a is words; C is i32
/// for i8x4. Packed rows of several digits meet unpacked codes.
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
