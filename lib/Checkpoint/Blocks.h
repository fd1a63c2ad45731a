//===- Blocks.h - Blocks of quantised elements ------------------*- C++ -*-===//
//
// One block of Storage.h's formats from its bytes (of any alignment) to its
// float32 values: 256 of a K-quant.
//
//===----------------------------------------------------------------------===//

#ifndef GPTC_LIB_CHECKPOINT_BLOCKS_H
#define GPTC_LIB_CHECKPOINT_BLOCKS_H

#include <cstdint>

namespace gptc::checkpoint {

inline uint16_t readU16(const uint8_t *source) {
  return static_cast<uint16_t>(source[0] | source[1] << 8);
}
/// IEEE binary16; exact, because every f16 value is a float32 value.
float readF16(const uint8_t *source);

void dequantizeQ2_K(const uint8_t *block, float *values);
void dequantizeQ3_K(const uint8_t *block, float *values);
void dequantizeQ4_K(const uint8_t *block, float *values);
void dequantizeQ5_K(const uint8_t *block, float *values);
void dequantizeQ6_K(const uint8_t *block, float *values);

} // namespace gptc::checkpoint

#endif // GPTC_LIB_CHECKPOINT_BLOCKS_H
