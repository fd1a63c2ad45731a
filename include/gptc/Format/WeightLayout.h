/* WeightLayout.h - how weights lie in a package, and their packers.
 *
 * Vector (norm scales, biases): f32 values, n0 .. n0 + n, the descriptor's
 * shift added to each, zero-padded to a multiple of 64 elements.
 *
 * Panel (every matrix; also tables that embedding gathers from): the N output
 * features are cut into panels of NR consecutive features, the last one
 * zero-padded; panel p starts at p * gptc_panel_bytes(). Inside a panel, by
 * element format:
 *   f32, f16, bf16  [K][NR] elements
 *   bf16x2          [K/2 rounded up][NR] pairs of bf16, k even first; an odd K
 *                   is padded with 0
 *   i8x4            [K/4 rounded up][NR][4] uint8 codes, then [NR] f32 scales:
 *                   a value is scale * (code - 128), |code - 128| <= 127; K is
 *                   padded with code 128
 *   q8_0            for each block of 32 k: [NR] f16 scales, [32][NR] int8
 *   q8_0x4          the same with [8][NR][4] uint8, each the int8 plus 128
 *   q4_0            for each block of 32 k: [NR] f16 scales, [4][NR] uint32:
 *                   nibble s of word g is the code of k = 8 g + s
 *   q4_1            the same with [NR] f16 scales, then [NR] f16 minimums,
 *                   before the words
 *
 * Dequantised values: q8_0 d*q; q4_0 d*(code - 8); q4_1 d*code + m; d, m are
 * f16. (Block formats: ggml.)
 *
 * Compiled both into the compiler and into every package: no allocation, no
 * libm, C++ subset.
 */
#ifndef GPTC_FORMAT_WEIGHTLAYOUT_H
#define GPTC_FORMAT_WEIGHTLAYOUT_H
#include "gptc/Format/Program.h"
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
/* Bytes of one panel of NR features over K inputs in element format dtype
 * (gptc_dtype). */
uint64_t gptc_panel_bytes(int32_t dtype, int64_t nr, int64_t k);
/* Bytes of the packed form of w (its n, k, panel, packed_dtype, layout). */
uint64_t gptc_packed_bytes(const gptc_weight_desc *w);
/* Bytes of a source tensor of rows x cols in dtype; 0 if cols is no multiple of
 * the block. */
uint64_t gptc_source_bytes(int32_t dtype, int64_t rows, int64_t cols);
/* Packs panels (or vector) of w from the whole source tensor (may be unaligned)
 * into out (gptc_packed_bytes(w) bytes). Returns 0, or -1 if the combination is
 * not supported (a block format stored in_out). packed_dtype is source_dtype,
 * f32, bf16x2 or i8x4, to which numbers are rounded to nearest, ties to even (a
 * scale is the largest magnitude of the feature / 127), or q8_0x4 of q8_0. */
int gptc_pack_weight(const gptc_weight_desc *w, const void *source, void *out);
/* 64-bit checksum (documented in WeightLayout.cpp) that can run over
 * consecutive chunks: state starts at 0, chunks but the last a multiple of 64
 * bytes. */
uint64_t gptc_checksum(uint64_t state, const void *data, size_t bytes);
#ifdef __cplusplus
}
#endif
#endif
