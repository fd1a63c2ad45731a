//===- Storage.cpp - How tensor elements lie in a file --------------------===//
//
// Values are put together from bytes, so that neither the host's byte order nor
// the alignment of a mapping matters.
//
//===----------------------------------------------------------------------===//

#include "gptc/Checkpoint/Storage.h"
#include "Blocks.h"
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>

using namespace gptc::checkpoint;

namespace {
struct Layout {
  std::string_view name;
  uint16_t blockElements;
  uint16_t blockBytes;
};
} // namespace

/// In the order of the enumeration.
static constexpr Layout layouts[] = {
    {"f32", 1, 4},      {"f16", 1, 2},      {"bf16", 1, 2},
    {"q8_0", 32, 34},   {"q4_0", 32, 18},   {"q4_1", 32, 20},
    {"q5_0", 32, 22},   {"q5_1", 32, 24},   {"q2_k", 256, 84},
    {"q3_k", 256, 110}, {"q4_k", 256, 144}, {"q5_k", 256, 176},
    {"q6_k", 256, 210}, {"f64", 1, 8},      {"f8_e4m3", 1, 1},
    {"f8_e5m2", 1, 1},  {"i8", 1, 1},       {"i16", 1, 2},
    {"i32", 1, 4},      {"i64", 1, 8},      {"u8", 1, 1},
    {"u16", 1, 2},      {"u32", 1, 4},      {"u64", 1, 8},
    {"bool", 1, 1},
};
static_assert(std::size(layouts) == static_cast<size_t>(Storage::Bool) + 1);

static const Layout &layoutOf(Storage storage) {
  return layouts[static_cast<size_t>(storage)];
}

std::string_view gptc::checkpoint::storageName(Storage storage) {
  return layoutOf(storage).name;
}

std::optional<Storage> gptc::checkpoint::parseStorage(std::string_view name) {
  for (size_t i = 0; i < std::size(layouts); ++i)
    if (layouts[i].name == name)
      return static_cast<Storage>(i);
  return std::nullopt;
}

bool gptc::checkpoint::isWeightStorage(Storage storage) {
  return storage <= Storage::Q6_K;
}

std::string gptc::checkpoint::weightStorageNames() {
  std::string names;
  for (size_t i = 0; isWeightStorage(static_cast<Storage>(i)); ++i) {
    auto storage = static_cast<Storage>(i);
    names += i == 0 ? "" : storage == Storage::Q6_K ? " or " : ", ";
    names += storageName(storage);
  }
  return names;
}

size_t gptc::checkpoint::blockElements(Storage storage) {
  return layoutOf(storage).blockElements;
}

size_t gptc::checkpoint::blockBytes(Storage storage) {
  return layoutOf(storage).blockBytes;
}

std::optional<uint64_t> gptc::checkpoint::rowBytes(Storage storage,
                                                   uint64_t elements) {
  if (elements % blockElements(storage) != 0)
    return std::nullopt;
  uint64_t blocks = elements / blockElements(storage);
  if (blocks > std::numeric_limits<uint64_t>::max() / blockBytes(storage))
    return std::nullopt;
  return blocks * blockBytes(storage);
}

static float readF32(const uint8_t *source) {
  uint32_t low = readU16(source), high = readU16(source + 2);
  return std::bit_cast<float>(high << 16 | low);
}

static float readBF16(const uint8_t *source) {
  return std::bit_cast<float>(uint32_t{readU16(source)} << 16);
}

float gptc::checkpoint::readF16(const uint8_t *source) {
  uint32_t bits = readU16(source);
  uint32_t sign = (bits & 0x8000u) << 16;
  uint32_t exponent = bits >> 10 & 0x1f;
  uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0x1f) // infinity or NaN, payload kept
    return std::bit_cast<float>(sign | 0x7f800000u | mantissa << 13);
  if (exponent != 0) // the biases of the exponents are 127 and 15
    return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
  return sign ? -magnitude : magnitude;
}

static void dequantizeQ8_0(const uint8_t *block, float *values) {
  float d = readF16(block);
  for (int j = 0; j < 32; ++j)
    values[j] = d * static_cast<float>(static_cast<int8_t>(block[2 + j]));
}

static void dequantizeQ4_0(const uint8_t *block, float *values) {
  float d = readF16(block);
  for (int j = 0; j < 16; ++j) {
    uint8_t pair = block[2 + j];
    values[j] = d * static_cast<float>((pair & 15) - 8);
    values[j + 16] = d * static_cast<float>((pair >> 4) - 8);
  }
}

/// d * q is exact in float32 (11 bits times 4), so that the sum is rounded once
/// whether or not the compiler contracts it to an fma.
static void dequantizeQ4_1(const uint8_t *block, float *values) {
  float d = readF16(block), m = readF16(block + 2);
  for (int j = 0; j < 16; ++j) {
    uint8_t pair = block[4 + j];
    values[j] = d * static_cast<float>(pair & 15) + m;
    values[j + 16] = d * static_cast<float>(pair >> 4) + m;
  }
}

/// The five bits of element j of a q5_0 or q5_1 block.
static int fiveBits(const uint8_t *high, const uint8_t *nibbles, int j) {
  int low = j < 16 ? nibbles[j] & 15 : nibbles[j - 16] >> 4;
  return low | (high[j / 8] >> (j % 8) & 1) << 4;
}

static void dequantizeQ5_0(const uint8_t *block, float *values) {
  float d = readF16(block);
  for (int j = 0; j < 32; ++j)
    values[j] = d * static_cast<float>(fiveBits(block + 2, block + 6, j) - 16);
}

/// Rounded once, as q4_1.
static void dequantizeQ5_1(const uint8_t *block, float *values) {
  float d = readF16(block), m = readF16(block + 2);
  for (int j = 0; j < 32; ++j)
    values[j] = d * static_cast<float>(fiveBits(block + 4, block + 8, j)) + m;
}

/// The same scale and codes; those of q5_0 lie between -16 and 15.
static void convertQ5_0ToQ8_0(const uint8_t *block, uint8_t *target) {
  target[0] = block[0];
  target[1] = block[1];
  for (int j = 0; j < 32; ++j)
    target[2 + j] =
        static_cast<uint8_t>(fiveBits(block + 2, block + 6, j) - 16);
}

/// `read` turns one block into its values.
template <typename ReadBlock>
static bool forEachBlock(Storage storage, const uint8_t *source, size_t count,
                         float *values, ReadBlock read) {
  size_t elements = blockElements(storage), bytes = blockBytes(storage);
  for (size_t i = 0; i < count; i += elements, source += bytes)
    read(source, values + i);
  return true;
}

bool gptc::checkpoint::dequantizeRow(Storage storage, const uint8_t *source,
                                     size_t count, float *values) {
  if (count % blockElements(storage) != 0)
    return false;
  auto scalar = [](float (*read)(const uint8_t *)) {
    return
        [read](const uint8_t *source, float *value) { *value = read(source); };
  };
  switch (storage) {
  case Storage::F32:
    return forEachBlock(storage, source, count, values, scalar(readF32));
  case Storage::F16:
    return forEachBlock(storage, source, count, values, scalar(readF16));
  case Storage::BF16:
    return forEachBlock(storage, source, count, values, scalar(readBF16));
  case Storage::Q8_0:
    return forEachBlock(storage, source, count, values, dequantizeQ8_0);
  case Storage::Q4_0:
    return forEachBlock(storage, source, count, values, dequantizeQ4_0);
  case Storage::Q4_1:
    return forEachBlock(storage, source, count, values, dequantizeQ4_1);
  case Storage::Q5_0:
    return forEachBlock(storage, source, count, values, dequantizeQ5_0);
  case Storage::Q5_1:
    return forEachBlock(storage, source, count, values, dequantizeQ5_1);
  case Storage::Q2_K:
    return forEachBlock(storage, source, count, values, dequantizeQ2_K);
  case Storage::Q3_K:
    return forEachBlock(storage, source, count, values, dequantizeQ3_K);
  case Storage::Q4_K:
    return forEachBlock(storage, source, count, values, dequantizeQ4_K);
  case Storage::Q5_K:
    return forEachBlock(storage, source, count, values, dequantizeQ5_K);
  case Storage::Q6_K:
    return forEachBlock(storage, source, count, values, dequantizeQ6_K);
  default:
    return false;
  }
}

Storage gptc::checkpoint::packedFrom(Storage storage) {
  if (storage <= Storage::Q4_1)
    return storage;
  return storage == Storage::Q5_0 ? Storage::Q8_0 : Storage::F32;
}

bool gptc::checkpoint::convertRow(Storage storage, const uint8_t *source,
                                  size_t count, uint8_t *target) {
  std::optional<uint64_t> bytes = rowBytes(storage, count);
  if (!isWeightStorage(storage) || !bytes)
    return false;
  Storage packed = packedFrom(storage);
  if (packed == storage) {
    std::memcpy(target, source, *bytes);
    return true;
  }
  size_t elements = blockElements(storage);
  for (size_t i = 0; i < count; i += elements, source += blockBytes(storage)) {
    if (packed == Storage::Q8_0) {
      convertQ5_0ToQ8_0(source, target);
      target += blockBytes(packed);
      continue;
    }
    float values[256];
    dequantizeRow(storage, source, elements, values);
    for (size_t j = 0; j < elements; ++j, target += 4) {
      uint32_t bits = std::bit_cast<uint32_t>(values[j]);
      for (int byte = 0; byte < 4; ++byte)
        target[byte] = static_cast<uint8_t>(bits >> 8 * byte);
    }
  }
  return true;
}
