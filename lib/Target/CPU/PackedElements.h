//===- PackedElements.h - numbers of packed weights -------------*- C++ -*-===//
//
// How elements of the formats of Format/WeightLayout.h are read, one or a vector
// of columns at a time, and rounded.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "Emitter.h"

namespace gptc::cpu {

/// Whether 32 k of a column share a scale.
bool isBlock(gpt::Storage s);
/// Bytes of a block of nr columns.
int64_t blockBytes(gpt::Storage s, int64_t nr);
/// Bytes of one packed panel; equal to gptc_panel_bytes.
int64_t panelBytes(gpt::Storage storage, int64_t nr, int64_t k);
/// Bytes of an element of f32, f16 or bf16, of a pair of bf16x2.
int64_t denseBytes(gpt::Storage s);

/// One element of these, or a vector; pairs as words.
Value loadDense(Emitter &e, gpt::Storage s, Value p, int64_t lanes);
/// f16 to f32, scalar or vector.
Value halfToFloat(Emitter &e, Value h);
/// The bits of bf16 to f32.
Value bf16ToFloat(Emitter &e, Value bits);
/// The bf16 in the high or low half of words, as f32.
Value halfOfPair(Emitter &e, Value words, bool high);

/// Four-bit codes in bits [4s, 4s + 4) of the words, as floats minus `zero`;
/// `table` as nibbleTable says.
Value nibbles(Emitter &e, Value words, int64_t s, int zero, Value table);
/// The values of the 16 codes, less their zero, where the target looks them up;
/// else null.
Value nibbleTable(Emitter &e, gpt::Storage s);

/// The bits of f32 numbers rounded to bf16, to nearest, ties to even: the low
/// half is 0.
Value roundedBits(Emitter &e, Value v);
/// Two vectors of f32 as words of pairs of bf16.
Value roundToPairs(Emitter &e, Value even, Value odd);

/// One value n, k of a packed matrix, as f32.
Value loadPacked(Emitter &e, gpt::Storage storage, Value base, Value n, Value k,
                 int64_t inFeatures);

} // namespace gptc::cpu
