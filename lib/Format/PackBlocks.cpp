//===- PackBlocks.cpp - Packers of q8_0, q4_0 and q4_1 --------------------===//
//
// Compiled as WeightLayout.cpp says. Conversions to f32 are exact but that of
// q4_1, whose d * code + m is rounded once (d * code is exact: 11 + 4 bits).
//
// Source of the block formats: ggml's Q8_0, Q4_0 and Q4_1.
//
//===----------------------------------------------------------------------===//
#include "Packers.h"

using namespace gptc::format;

namespace {

/// A block of 32 values of one feature, taken apart.
struct Block {
  uint16_t scale, minimum;
  uint8_t codes[blockK]; ///< int8 for q8_0
};

void readBlock(int32_t dtype, const char *from, Block &block) {
  block.scale = load<uint16_t>(from);
  block.minimum = dtype == GPTC_Q4_1 ? load<uint16_t>(from + 2) : 0;
  if (dtype == GPTC_Q8_0) {
    memcpy(block.codes, from + 2, blockK);
    return;
  }
  const char *nibbles = from + (dtype == GPTC_Q4_1 ? 4 : 2);
  for (int64_t i = 0; i < blockK / 2; ++i) {
    uint8_t byte = static_cast<uint8_t>(nibbles[i]);
    block.codes[i] = byte & 15;
    block.codes[i + blockK / 2] = byte >> 4;
  }
}

void dequantizeBlock(int32_t dtype, const Block &block, float *out,
                     int64_t stride) {
  float d = halfToFloat(block.scale), m = halfToFloat(block.minimum);
  for (int64_t i = 0; i < blockK; ++i) {
    int32_t code = block.codes[i];
    if (dtype == GPTC_Q8_0)
      out[i * stride] = d * static_cast<float>(static_cast<int8_t>(code));
    else if (dtype == GPTC_Q4_0)
      out[i * stride] = d * static_cast<float>(code - 8);
    else
      out[i * stride] = d * static_cast<float>(code) + m;
  }
}

void storePairs(int32_t dtype, const Block &block, uint32_t *out,
                int64_t stride) {
  float values[blockK];
  dequantizeBlock(dtype, block, values, 1);
  for (int64_t i = 0; i < blockK / 2; ++i)
    out[i * stride] = pairOfBF16(values[2 * i], values[2 * i + 1]);
}

/// Stores feature j of a block of a panel of nr features; see the header.
void storeBlock(int32_t dtype, const Block &block, char *panel, int64_t nr,
                int64_t j) {
  memcpy(panel + j * 2, &block.scale, 2);
  panel += nr * 2;
  if (dtype == GPTC_Q4_1) {
    memcpy(panel + j * 2, &block.minimum, 2);
    panel += nr * 2;
  }
  if (dtype == GPTC_PACKED_Q8_0X4) {
    for (int64_t i = 0; i < blockK; ++i)
      panel[(i / 4 * nr + j) * 4 + i % 4] =
          static_cast<char>(block.codes[i] ^ 0x80);
    return;
  }
  if (dtype == GPTC_Q8_0) {
    for (int64_t i = 0; i < blockK; ++i)
      panel[i * nr + j] = static_cast<char>(block.codes[i]);
    return;
  }
  for (int64_t g = 0; g < 4; ++g) {
    uint32_t word = 0;
    for (int64_t s = 0; s < 8; ++s)
      word |= static_cast<uint32_t>(block.codes[8 * g + s]) << (4 * s);
    memcpy(panel + (g * nr + j) * 4, &word, 4);
  }
}

} // namespace

int gptc::format::packBlocks(const gptc_weight_desc &w, const char *source,
                             char *out) {
  const int32_t dtype = w.source_dtype;
  const bool vector = w.layout == GPTC_LAYOUT_VECTOR;
  const int64_t bytes = blockBytes(dtype);
  if (w.in_out || (!vector && w.k % blockK) ||
      (vector && w.source_cols % blockK))
    return -1;
  if (vector) {
    float values[blockK];
    Block block;
    int64_t held = -1; // the block in `values`
    for (int64_t j = 0; j < w.n; ++j) {
      int64_t at = sourceFeature(w, j);
      if (at / blockK != held) {
        held = at / blockK;
        readBlock(dtype, source + held * bytes, block);
        dequantizeBlock(dtype, block, values, 1);
      }
      reinterpret_cast<float *>(out)[j] = values[at % blockK];
    }
    return 0;
  }
  const bool keep =
      w.packed_dtype == dtype ||
      (dtype == GPTC_Q8_0 && w.packed_dtype == GPTC_PACKED_Q8_0X4);
  const bool pairs = w.packed_dtype == GPTC_PACKED_BF16X2;
  if (!keep && !pairs && w.packed_dtype != GPTC_F32)
    return -1;
  const int64_t nr = w.panel, blocks = w.k / blockK;
  const uint64_t packedBlock = gptc_panel_bytes(w.packed_dtype, nr, blockK);
  for (int64_t n = 0; n < w.n; n += nr) {
    int64_t features = smaller(nr, w.n - n);
    if (features < nr)
      memset(out, 0, packedBlock * blocks);
    for (int64_t b = 0; b < blocks; ++b, out += packedBlock)
      for (int64_t j = 0; j < features; ++j) {
        Block block;
        readBlock(dtype,
                  source + (sourceFeature(w, n + j) * blocks + b) * bytes,
                  block);
        if (keep)
          storeBlock(w.packed_dtype, block, out, nr, j);
        else if (pairs)
          storePairs(dtype, block, reinterpret_cast<uint32_t *>(out) + j, nr);
        else
          dequantizeBlock(dtype, block, reinterpret_cast<float *>(out) + j, nr);
      }
  }
  return 0;
}
