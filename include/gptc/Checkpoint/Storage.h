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
//   q5_0  32 elements: f16 d, u32 of fifth bits, nibbles  value = d * (q - 16)
//   q5_1  32 elements: f16 d, f16 m, fifth bits, nibbles  value = d * q + m
//
// Byte j of the nibbles holds element j (low) and element j + 16 (high); bit j
// of the fifth bits belongs to element j.
//
// K-quants have 256 elements, in groups of 16 (q2_k, q3_k, q6_k) or 32 (q4_k,
// q5_k) with whole numbers s and z of their own beside the block's f16 d, e:
//
//   q2_k, q4_k, q5_k  value = (d * s) * q - e * z
//   q3_k, q6_k        value = (d * s) * q, q signed
//
// Products of d, s and q, and of e and z, are exact in float32. KQuants.cpp
// says where the bits lie. Source: the ggml block layouts as the GGUF
// specification documents them.
//
//===----------------------------------------------------------------------===//

#ifndef GPTC_CHECKPOINT_STORAGE_H
#define GPTC_CHECKPOINT_STORAGE_H

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
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
  Q5_0,
  Q5_1,
  Q2_K,
  Q3_K,
  Q4_K,
  Q5_K,
  Q6_K,
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

/// "f32, f16, ... or q6_k": the formats of weights, for messages.
std::string weightStorageNames();

/// Elements in a block: 256 for K-quants, 32 for the other block formats,
/// otherwise 1.
size_t blockElements(Storage storage);
/// Bytes in a block, or the size of an element.
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

/// The format in which a package reads weights of a format of weights: itself
/// where kernels compute from it, else the smallest such format that holds the
/// same float32 values. q5_0 reads as q8_0; q5_1 and K-quants read as f32.
Storage packedFrom(Storage storage);

/// Writes a row of `count` elements in packedFrom(storage): rowBytes of it.
/// Returns false, writing nothing, where dequantizeRow does.
bool convertRow(Storage storage, const uint8_t *source, size_t count,
                uint8_t *target);

} // namespace gptc::checkpoint

#endif // GPTC_CHECKPOINT_STORAGE_H
