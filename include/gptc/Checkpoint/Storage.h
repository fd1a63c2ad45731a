//===- Storage.h - How tensor elements lie in a file ------------*- C++ -*-===//
//
// The element formats of safetensors and GGUF that this version reads, and the
// naive meaning of those that can hold weights. All are little-endian. A block
// format groups consecutive elements of the innermost dimension; a row is a
// whole number of blocks.
//
//   q8_0  32 elements: f16 d, 32 x int8 q                 value = d * q
//   q4_0  32 elements: f16 d, 16 bytes of nibbles         value = d * (q - 8)
//   q4_1  32 elements: f16 d, f16 m, 16 bytes of nibbles  value = d * q + m
//
// Byte j of the nibbles holds element j (low) and element j + 16 (high).
// Source: the ggml block layouts as the GGUF specification documents them.
//
//===----------------------------------------------------------------------===//

#ifndef GPTC_CHECKPOINT_STORAGE_H
#define GPTC_CHECKPOINT_STORAGE_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gptc::checkpoint {

enum class Storage : uint8_t {
  // Formats of weights: dequantizeRow reads these.
  F32,
  F16,
  BF16,
  Q8_0,
  Q4_0,
  Q4_1,
  // Formats of buffers that lie beside weights (masks, position ids). Their
  // tensors are listed and checked like any other, but are not weights.
  F64,
  F8E4M3,
  F8E5M2,
  I8,
  I16,
  I32,
  I64,
  U8,
  U16,
  U32,
  U64,
  Bool,
};

/// "f32", "q4_1", "bool", ...
std::string_view storageName(Storage storage);
/// The inverse of storageName; nothing for any other text.
std::optional<Storage> parseStorage(std::string_view name);

/// Whether dequantizeRow reads it.
bool isWeightStorage(Storage storage);

/// Elements in a block: 32 for q8_0, q4_0 and q4_1, otherwise 1.
size_t blockElements(Storage storage);
/// Bytes in a block: 34, 18 and 20; otherwise the size of an element.
size_t blockBytes(Storage storage);

/// Bytes of a row of `elements`; nothing when that is not a whole number of
/// blocks or does not fit in 64 bits.
std::optional<uint64_t> rowBytes(Storage storage, uint64_t elements);

/// Writes the `count` values of a row to `values`, in float32 arithmetic.
/// `source` holds rowBytes(storage, count) bytes and may be unaligned. Returns
/// false, writing nothing, when `storage` is not a weight format or `count` is
/// not a whole number of blocks.
bool dequantizeRow(Storage storage, const uint8_t *source, size_t count,
                   float *values);

} // namespace gptc::checkpoint

#endif // GPTC_CHECKPOINT_STORAGE_H
