//===- KQuants.cpp - Blocks of 256 elements in groups with scales ---------===//
//
// Bytes of a block, in order:
//
//   q2_k   scales[16] (low nibble s, high nibble z), codes[64], d, e
//   q3_k   high[32], codes[64], scales[12], d
//   q4_k   d, e, scales[12], codes[128]
//   q5_k   d, e, scales[12], high[32], codes[128]
//   q6_k   codes[128], high[64], int8 scales[16], d
//
// d and e are f16. A code's low bits lie in `codes`, those above them in
// `high`: element j of a half (q2_k, q3_k, q6_k) or of a quarter (q4_k, q5_k)
// of the block shares its byte with the elements whole rows of 32 further on.
//
// Every product is exact in float32 (11 bits of d, at most 7 of s, 6 of q; 11
// of e, 6 of z), so that a value is rounded once, by the subtraction, whether
// or not the compiler contracts it to an fma.
//
// Source: the ggml block layouts as the GGUF specification names them; checked
// against gguf-py's (test/Families/blocks).
//
//===----------------------------------------------------------------------===//

#include "Blocks.h"

using namespace gptc::checkpoint;

void gptc::checkpoint::dequantizeQ2_K(const uint8_t *block, float *values) {
  const uint8_t *scales = block, *codes = block + 16;
  float d = readF16(block + 80), e = readF16(block + 82);
  for (int i = 0; i < 256; ++i) {
    int half = i / 128, row = i / 32 % 4; // of two bits in the half's bytes
    int scale = scales[i / 16];
    int q = codes[half * 32 + i % 32] >> (2 * row) & 3;
    values[i] = d * static_cast<float>(scale & 15) * static_cast<float>(q) -
                e * static_cast<float>(scale >> 4);
  }
}

/// Six bits of group `i`: four in a nibble of the first eight bytes, two in the
/// last four.
static int scaleOfQ3_K(const uint8_t *scales, int i) {
  int low = i < 8 ? scales[i] & 15 : scales[i - 8] >> 4;
  int high = scales[8 + i % 4] >> (2 * (i / 4)) & 3;
  return (low | high << 4) - 32;
}

void gptc::checkpoint::dequantizeQ3_K(const uint8_t *block, float *values) {
  const uint8_t *high = block, *codes = block + 32, *scales = block + 96;
  float d = readF16(block + 108);
  for (int i = 0; i < 256; ++i) {
    int half = i / 128, row = i / 32 % 4;
    int q = codes[half * 32 + i % 32] >> (2 * row) & 3;
    q -= high[i % 32] >> (i / 32) & 1 ? 0 : 4; // a set bit: not negative
    values[i] = d * static_cast<float>(scaleOfQ3_K(scales, i / 16)) *
                static_cast<float>(q);
  }
}

namespace {
struct ScaleAndMinimum {
  float scale, minimum;
};
} // namespace

/// Of q4_k and q5_k: six bits each. Groups 0 to 3 have bytes of their own,
/// whose top bits serve groups 4 to 7 beside a nibble.
static ScaleAndMinimum scaleOfGroup(const uint8_t *block, int i) {
  const uint8_t *bytes = block + 4;
  int s, z;
  if (i < 4) {
    s = bytes[i] & 63;
    z = bytes[i + 4] & 63;
  } else {
    s = (bytes[i + 4] & 15) | bytes[i - 4] >> 6 << 4;
    z = bytes[i + 4] >> 4 | bytes[i] >> 6 << 4;
  }
  return {readF16(block) * static_cast<float>(s),
          readF16(block + 2) * static_cast<float>(z)};
}

/// `high` is null for q4_k.
static void dequantizeGroups(const uint8_t *block, const uint8_t *codes,
                             const uint8_t *high, float *values) {
  for (int group = 0; group < 8; ++group) {
    ScaleAndMinimum by = scaleOfGroup(block, group);
    for (int j = 0; j < 32; ++j) {
      int q = codes[group / 2 * 32 + j] >> (group % 2 * 4) & 15;
      if (high)
        q |= (high[j] >> group & 1) << 4;
      values[group * 32 + j] = by.scale * static_cast<float>(q) - by.minimum;
    }
  }
}

void gptc::checkpoint::dequantizeQ4_K(const uint8_t *block, float *values) {
  dequantizeGroups(block, block + 16, nullptr, values);
}

void gptc::checkpoint::dequantizeQ5_K(const uint8_t *block, float *values) {
  dequantizeGroups(block, block + 48, block + 16, values);
}

void gptc::checkpoint::dequantizeQ6_K(const uint8_t *block, float *values) {
  const uint8_t *codes = block, *high = block + 128, *scales = block + 192;
  float d = readF16(block + 208);
  for (int i = 0; i < 256; ++i) {
    int half = i / 128, row = i / 32 % 4; // rows 0, 1 low nibbles; 2, 3 high
    int low = codes[half * 64 + i % 64] >> (row / 2 * 4) & 15;
    int top = high[half * 32 + i % 32] >> (2 * row) & 3;
    int scale = static_cast<int8_t>(scales[i / 16]);
    values[i] = d * static_cast<float>(scale) *
                static_cast<float>((low | top << 4) - 32);
  }
}
