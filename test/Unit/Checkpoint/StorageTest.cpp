//===- StorageTest.cpp - Element formats, with values worked by hand ------===//

#include "gptc/Checkpoint/Storage.h"
#include "gptc/Checkpoint/Tensor.h"
#include "TestFiles.h"
#include <cmath>
#include <limits>

using namespace gptc::checkpoint;
using namespace gptc::checkpoint::test;

static const uint8_t *bytesOf(const std::string &text) {
  return reinterpret_cast<const uint8_t *>(text.data());
}

static std::vector<float> dequantize(Storage storage, const std::string &bytes,
                                     size_t count) {
  std::vector<float> values(count);
  EXPECT_EQ(rowBytes(storage, count), bytes.size());
  EXPECT_TRUE(dequantizeRow(storage, bytesOf(bytes), count, values.data()));
  return values;
}

static std::string f16(uint16_t bits) { return littleEndian(bits, 2); }

TEST(Storage, NamesGoBothWays) {
  for (int i = 0; i <= static_cast<int>(Storage::Bool); ++i) {
    auto storage = static_cast<Storage>(i);
    EXPECT_EQ(parseStorage(storageName(storage)), storage);
  }
  EXPECT_EQ(storageName(Storage::Q4_1), "q4_1");
  EXPECT_EQ(storageName(Storage::Q4_K), "q4_k");
  EXPECT_EQ(parseStorage("q8_k"), std::nullopt);
  EXPECT_EQ(parseStorage(""), std::nullopt);
}

TEST(Storage, RowBytes) {
  EXPECT_EQ(rowBytes(Storage::F32, 3), 12u);
  EXPECT_EQ(rowBytes(Storage::BF16, 3), 6u);
  EXPECT_EQ(rowBytes(Storage::Q8_0, 64), 68u);
  EXPECT_EQ(rowBytes(Storage::Q4_0, 64), 36u);
  EXPECT_EQ(rowBytes(Storage::Q4_1, 64), 40u);
  EXPECT_EQ(rowBytes(Storage::Q4_1, 0), 0u);
  EXPECT_EQ(rowBytes(Storage::Q4_1, 63), std::nullopt);
  EXPECT_EQ(rowBytes(Storage::Q6_K, 512), 420u);
  EXPECT_EQ(rowBytes(Storage::Q6_K, 255), std::nullopt);
  EXPECT_EQ(rowBytes(Storage::F64, uint64_t{1} << 61), std::nullopt);
}

TEST(Storage, DimensionsOfOneBefore) {
  EXPECT_TRUE(isShapeOf({20, 32}, {20, 32}));
  EXPECT_TRUE(isShapeOf({1, 20, 32}, {20, 32}));
  EXPECT_TRUE(isShapeOf({1, 1, 20, 32}, {1, 20, 32}));
  EXPECT_TRUE(isShapeOf({1}, {}));
  EXPECT_FALSE(isShapeOf({2, 20, 32}, {20, 32}));
  EXPECT_FALSE(isShapeOf({20, 1, 32}, {20, 32}));
  EXPECT_FALSE(isShapeOf({20, 32}, {1, 20, 32}));
  EXPECT_FALSE(isShapeOf({1, 32, 20}, {20, 32}));
  EXPECT_FALSE(isShapeOf({1, 0}, {20}));
}

TEST(Storage, F16) {
  // one, -2, largest, smallest normal, smallest subnormal, largest subnormal
  std::string bytes = f16(0x3c00) + f16(0xc000) + f16(0x7bff) + f16(0x0400) +
                      f16(0x0001) + f16(0x83ff);
  EXPECT_EQ(
      dequantize(Storage::F16, bytes, 6),
      (std::vector<float>{1, -2, 65504, 0x1p-14f, 0x1p-24f, -1023 * 0x1p-24f}));
  std::vector<float> special = dequantize(
      Storage::F16, f16(0x8000) + f16(0x7c00) + f16(0xfc00) + f16(0x7e01), 4);
  EXPECT_EQ(special[0], 0.0f);
  EXPECT_TRUE(std::signbit(special[0]));
  EXPECT_EQ(special[1], std::numeric_limits<float>::infinity());
  EXPECT_EQ(special[2], -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(special[3]));
}

TEST(Storage, BF16AndF32) {
  EXPECT_EQ(dequantize(Storage::BF16, f16(0x3f80) + f16(0xc049), 2),
            (std::vector<float>{1.0f, -3.140625f}));
  EXPECT_EQ(dequantize(Storage::F32, f32(0.1f) + f32(-7.5f), 2),
            (std::vector<float>{0.1f, -7.5f}));
}

TEST(Storage, Q8_0) {
  std::string block = f16(0x3800); // d = 0.5
  for (int j = 0; j < 32; ++j)
    block += static_cast<char>(j * 8 - 128);
  std::vector<float> values = dequantize(Storage::Q8_0, block, 32);
  for (int j = 0; j < 32; ++j)
    EXPECT_EQ(values[j], 0.5f * (j * 8 - 128));
}

TEST(Storage, Q4_0) {
  std::string block = f16(0xb400); // d = -0.25
  for (int j = 0; j < 16; ++j)
    block += static_cast<char>(j | (15 - j) << 4);
  std::vector<float> values = dequantize(Storage::Q4_0, block, 32);
  for (int j = 0; j < 16; ++j) {
    EXPECT_EQ(values[j], -0.25f * (j - 8));
    EXPECT_EQ(values[j + 16], -0.25f * (7 - j));
  }
}

TEST(Storage, Q4_1RoundsOnce) {
  // d = 1365 * 2^-12 (0x3555), m = -(1 + 2^-10) (0xbc01): with the sum rounded
  // to float32 only, which here is exact.
  std::string block = f16(0x3555) + f16(0xbc01);
  for (int j = 0; j < 16; ++j)
    block += static_cast<char>(j | (15 - j) << 4);
  // A second block, so that the step from block to block is seen.
  block += f16(0x0000) + f16(0x4000) + std::string(16, '\xff');
  std::vector<float> values = dequantize(Storage::Q4_1, block, 64);
  for (int j = 0; j < 16; ++j) {
    EXPECT_EQ(values[j], static_cast<float>(j * 1365 * 0x1p-12 - 0x1.004p0));
    EXPECT_EQ(values[j + 16],
              static_cast<float>((15 - j) * 1365 * 0x1p-12 - 0x1.004p0));
  }
  for (int j = 32; j < 64; ++j)
    EXPECT_EQ(values[j], 2.0f);
}

TEST(Storage, RefusesPartialBlocksAndBuffers) {
  std::string bytes(40, '\0');
  float value = 5;
  EXPECT_FALSE(dequantizeRow(Storage::Q4_1, bytesOf(bytes), 31, &value));
  EXPECT_FALSE(dequantizeRow(Storage::I64, bytesOf(bytes), 1, &value));
  EXPECT_FALSE(dequantizeRow(Storage::Q2_K, bytesOf(bytes), 32, &value));
  EXPECT_EQ(value, 5);
  uint8_t byte = 5;
  EXPECT_FALSE(convertRow(Storage::Q5_0, bytesOf(bytes), 31, &byte));
  EXPECT_FALSE(convertRow(Storage::I64, bytesOf(bytes), 1, &byte));
  EXPECT_EQ(byte, 5);
}

// The sanitizer build fails here if a pointer into the file is ever read as a
// wider type.
TEST(Storage, AnyAlignment) {
  for (size_t shift = 0; shift < 8; ++shift) {
    std::string bytes = std::string(shift, 'x') + f32(1.5f) + f32(-2.0f);
    float values[2];
    ASSERT_TRUE(dequantizeRow(Storage::F32, bytesOf(bytes) + shift, 2, values));
    EXPECT_EQ(values[0], 1.5f);
    EXPECT_EQ(values[1], -2.0f);
  }
}
