//===- WeightLayoutTest.cpp - Packed weights against their definition -----===//
//
// Each panel is read back element by element through the definition in
// WeightLayout.h and compared with the source tensor.
//
//===----------------------------------------------------------------------===//

#include "gptc/Format/WeightLayout.h"
#include "gptc/Runtime/gptc.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <vector>

namespace {

float half(uint16_t h) {
  int e = h >> 10 & 31, m = h & 1023;
  float v = e == 31 ? (m ? NAN : INFINITY)
            : e     ? std::ldexp(1024.0f + m, e - 25)
                    : std::ldexp(float(m), -24);
  return h & 0x8000 ? -v : v;
}

gptc_weight_desc panel(int32_t dtype, int32_t packed, int64_t rows,
                       int64_t cols, int64_t n0, int64_t n, int64_t k,
                       int64_t nr, bool inOut = false) {
  gptc_weight_desc w{};
  w.name = "w";
  w.source_dtype = dtype;
  w.packed_dtype = packed;
  w.layout = GPTC_LAYOUT_PANEL;
  w.in_out = inOut;
  w.source_rows = rows;
  w.source_cols = cols;
  w.n0 = n0;
  w.n = n;
  w.k = k;
  w.panel = nr;
  w.bytes = gptc_packed_bytes(&w);
  return w;
}

template <typename T> T at(const std::vector<char> &bytes, size_t offset) {
  T value;
  memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

std::vector<char> pack(const gptc_weight_desc &w, const void *source) {
  std::vector<char> out(w.bytes + 8, 0x55);
  EXPECT_EQ(gptc_pack_weight(&w, source, out.data()), 0);
  for (size_t i = w.bytes; i < out.size(); ++i)
    EXPECT_EQ(out[i], 0x55) << "written past the end";
  out.resize(w.bytes);
  return out;
}

// A projection packed head by head: heads of 12 features, of which the section
// takes 5 from the fourth on.
TEST(WeightLayout, PartOfEveryHead) {
  const int64_t K = 32, N = 48, take = 5, of = 12, from = 3, n = 20, nr = 16;
  std::vector<float> rows(N * K), columns(K * N), bias(N);
  for (int64_t f = 0; f < N; ++f) {
    bias[f] = static_cast<float>(f);
    for (int64_t k = 0; k < K; ++k)
      rows[f * K + k] = columns[k * N + f] = static_cast<float>(100 * f + k);
  }
  gptc_weight_desc straight = panel(GPTC_F32, GPTC_F32, N, K, from, n, K, nr);
  gptc_weight_desc turned =
      panel(GPTC_F32, GPTC_F32, K, N, from, n, K, nr, true);
  gptc_weight_desc vector = panel(GPTC_F32, GPTC_F32, 1, N, from, n, 1, 1);
  vector.layout = GPTC_LAYOUT_VECTOR;
  vector.bytes = gptc_packed_bytes(&vector);
  for (gptc_weight_desc *w : {&straight, &turned, &vector}) {
    w->take = take;
    w->of = of;
  }
  std::vector<char> a = pack(straight, rows.data()),
                    b = pack(turned, columns.data()),
                    c = pack(vector, bias.data());
  EXPECT_EQ(a, b);
  for (int64_t i = 0; i < n; ++i) {
    int64_t feature = i / take * of + from + i % take;
    EXPECT_EQ(at<float>(c, i * 4), static_cast<float>(feature));
    for (int64_t k = 0; k < K; ++k)
      EXPECT_EQ(at<float>(a, (i / nr * nr * K + k * nr + i % nr) * 4),
                static_cast<float>(100 * feature + k));
  }
  // Blocks of 32 inputs: rows of features are whole blocks.
  gptc_weight_desc blocks = panel(GPTC_Q8_0, GPTC_F32, N, K, from, n, K, nr);
  blocks.take = take;
  blocks.of = of;
  std::vector<char> source(N * 34);
  for (int64_t f = 0; f < N; ++f) {
    uint16_t one = 0x3c00;
    memcpy(&source[f * 34], &one, 2);
    for (int64_t k = 0; k < K; ++k)
      source[f * 34 + 2 + k] = static_cast<char>(f);
  }
  std::vector<char> d = pack(blocks, source.data());
  for (int64_t i = 0; i < n; ++i)
    EXPECT_EQ(at<float>(d, (i / nr * nr * K + i % nr) * 4),
              static_cast<float>(i / take * of + from + i % take));
}

// A number that is added to a vector: once, to what is there of it, in f32.
TEST(WeightLayout, ShiftedVector) {
  std::vector<float> f32 = {0.5f, -1.0f, 0x1p-24f, 3 * 0x1p-24f, -7.25f};
  std::vector<uint16_t> bf16(5);
  std::vector<char> q8(34);
  uint16_t scale = 0x3000; // 2^-3
  memcpy(q8.data(), &scale, 2);
  for (int64_t i = 0; i < 5; ++i) {
    uint32_t bits;
    memcpy(&bits, &f32[i], 4);
    bf16[i] = static_cast<uint16_t>(bits >> 16);
    q8[2 + i] = static_cast<char>(10 - i);
  }
  auto vector = [](int32_t dtype, int64_t cols) {
    gptc_weight_desc w = panel(dtype, GPTC_F32, 1, cols, 0, 5, 1, 1);
    w.layout = GPTC_LAYOUT_VECTOR;
    w.bytes = gptc_packed_bytes(&w);
    w.shift = 1;
    return w;
  };
  std::vector<char> a = pack(vector(GPTC_F32, 5), f32.data()),
                    b = pack(vector(GPTC_BF16, 5), bf16.data()),
                    c = pack(vector(GPTC_Q8_0, 32), q8.data());
  ASSERT_EQ(a.size(), 256u);
  const float want[] = {1.5f, 0.0f, 1.0f, 1 + 0x1p-22f, -6.25f};
  for (int64_t i = 0; i < 64; ++i) {
    EXPECT_EQ(at<float>(a, i * 4), i < 5 ? want[i] : 0.0f);
    EXPECT_EQ(at<float>(b, i * 4), i < 5 ? want[i] : 0.0f);
    EXPECT_EQ(at<float>(c, i * 4),
              i < 5 ? 1 + static_cast<float>(10 - i) / 8 : 0.0f);
  }
  // Matrices are not shifted.
  gptc_weight_desc matrix = panel(GPTC_F32, GPTC_F32, 4, 8, 0, 4, 8, 16);
  matrix.shift = 1;
  std::vector<float> source(32);
  std::vector<char> out(matrix.bytes);
  EXPECT_EQ(gptc_pack_weight(&matrix, source.data(), out.data()), -1);
}

TEST(WeightLayout, F32BothOrientations) {
  const int64_t rows = 75, k = 37, n0 = 5, n = 70, nr = 32;
  std::vector<float> source(rows * k);
  for (size_t i = 0; i < source.size(); ++i)
    source[i] = float(i) + 1;
  std::vector<float> turned(source.size());
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < k; ++c)
      turned[c * rows + r] = source[r * k + c];
  auto a =
      pack(panel(GPTC_F32, GPTC_F32, rows, k, n0, n, k, nr), source.data());
  auto b = pack(panel(GPTC_F32, GPTC_F32, k, rows, n0, n, k, nr, true),
                turned.data());
  EXPECT_EQ(a, b);
  ASSERT_EQ(a.size(), size_t(3 * nr * k * 4));
  for (int64_t j = 0; j < 3 * nr; ++j)
    for (int64_t i = 0; i < k; ++i)
      ASSERT_EQ(at<float>(a, (j / nr * nr * k + i * nr + j % nr) * 4),
                j < n ? source[(n0 + j) * k + i] : 0.0f);
}

TEST(WeightLayout, HalfWidensExactly) {
  std::vector<uint16_t> source(65536);
  for (size_t i = 0; i < source.size(); ++i)
    source[i] = uint16_t(i);
  auto packed =
      pack(panel(GPTC_F16, GPTC_F32, 256, 256, 0, 256, 256, 16), source.data());
  for (int64_t j = 0; j < 256; ++j)
    for (int64_t i = 0; i < 256; ++i) {
      float got = at<float>(packed, (j / 16 * 16 * 256 + i * 16 + j % 16) * 4);
      float want = half(source[j * 256 + i]);
      ASSERT_TRUE(std::isnan(want) ? std::isnan(got) : !memcmp(&got, &want, 4))
          << j * 256 + i;
    }
}

TEST(WeightLayout, VectorsArePaddedWithZeros) {
  std::vector<uint16_t> source(100, 0x3f80); // 1.0 as bf16
  gptc_weight_desc w = panel(GPTC_BF16, GPTC_F32, 1, 100, 10, 65, 1, 1);
  w.layout = GPTC_LAYOUT_VECTOR;
  w.bytes = gptc_packed_bytes(&w);
  ASSERT_EQ(w.bytes, 512u);
  auto packed = pack(w, source.data());
  for (int i = 0; i < 128; ++i)
    EXPECT_EQ(at<float>(packed, i * 4), i < 65 ? 1.0f : 0.0f);
}

/// Value k of feature j through the definition of the packed format.
float packedValue(int32_t dtype, const std::vector<char> &p, int64_t nr,
                  int64_t K, int64_t j, int64_t k) {
  size_t block = gptc_panel_bytes(dtype, nr, 32);
  size_t o = j / nr * block * (K / 32) + k / 32 * block;
  j %= nr;
  k %= 32;
  float d = half(at<uint16_t>(p, o + 2 * j)), m = 0;
  o += 2 * nr;
  if (dtype == GPTC_Q4_1) {
    m = half(at<uint16_t>(p, o + 2 * j));
    o += 2 * nr;
  }
  if (dtype == GPTC_Q8_0)
    return d * at<int8_t>(p, o + k * nr + j);
  int code = at<uint32_t>(p, o + (k / 8 * nr + j) * 4) >> (4 * (k % 8)) & 15;
  return dtype == GPTC_Q4_0 ? d * (code - 8) : d * code + m;
}

class Blocks : public ::testing::TestWithParam<int32_t> {};

TEST_P(Blocks, KeepTheirValues) {
  const int32_t dtype = GetParam();
  const int64_t rows = 40, K = 96, n0 = 3, n = 35, nr = 16;
  const size_t blockBytes = gptc_source_bytes(dtype, 1, 32);
  std::vector<unsigned char> source(gptc_source_bytes(dtype, rows, K));
  ASSERT_EQ(source.size(), rows * K / 32 * blockBytes);
  std::mt19937 random(7);
  for (auto &byte : source)
    byte = random();
  for (size_t i = 0; i < source.size(); i += blockBytes) {
    source[i + 1] = source[i + 1] % 0x3c; // finite scales
    source[i + 3] = dtype == GPTC_Q4_1 ? source[i + 3] % 0x3c : source[i + 3];
  }
  auto kept = pack(panel(dtype, dtype, rows, K, n0, n, K, nr), source.data());
  auto wide =
      pack(panel(dtype, GPTC_F32, rows, K, n0, n, K, nr), source.data());
  for (int64_t j = 0; j < 48; ++j)
    for (int64_t k = 0; k < K; ++k) {
      float want = 0;
      if (j < n) {
        const unsigned char *b =
            source.data() + ((n0 + j) * (K / 32) + k / 32) * blockBytes;
        uint16_t d, m;
        memcpy(&d, b, 2);
        memcpy(&m, b + 2, 2);
        int i = k % 32;
        const unsigned char *q = b + (dtype == GPTC_Q4_1 ? 4 : 2);
        int nibble = i < 16 ? q[i] & 15 : q[i - 16] >> 4;
        want = dtype == GPTC_Q8_0   ? half(d) * int8_t(q[i])
               : dtype == GPTC_Q4_0 ? half(d) * (nibble - 8)
                                    : half(d) * nibble + half(m);
      }
      ASSERT_EQ(packedValue(dtype, kept, nr, K, j, k), want);
      ASSERT_EQ(at<float>(wide, (j / nr * nr * K + k * nr + j % nr) * 4), want);
    }
  gptc_weight_desc turned = panel(dtype, dtype, K, 64, 0, 64, K, nr, true);
  EXPECT_EQ(gptc_pack_weight(&turned, source.data(), kept.data()), -1);
}
INSTANTIATE_TEST_SUITE_P(All, Blocks,
                         ::testing::Values(GPTC_Q8_0, GPTC_Q4_0, GPTC_Q4_1));

TEST(Checksum, ChunksAndSingleBits) {
  std::vector<char> data(1000);
  for (size_t i = 0; i < data.size(); ++i)
    data[i] = char(i * 7);
  uint64_t whole = gptc_checksum(0, data.data(), data.size());
  uint64_t parts = gptc_checksum(gptc_checksum(0, data.data(), 128),
                                 data.data() + 128, data.size() - 128);
  EXPECT_EQ(whole, parts);
  for (size_t bit = 0; bit < data.size() * 8; bit += 13) {
    data[bit / 8] ^= 1 << bit % 8;
    EXPECT_NE(gptc_checksum(0, data.data(), data.size()), whole);
    data[bit / 8] ^= 1 << bit % 8;
  }
  EXPECT_NE(gptc_checksum(0, data.data(), 999), whole);
}

// bf16x2: the definition of rounding to nearest, ties to even, in double: the
// neighbours of x with eight significant bits.
float nearestBF16(float x) {
  if (x == 0 || std::isnan(x) || std::isinf(x))
    return x;
  int exponent;
  std::frexp(x, &exponent);
  double unit = std::ldexp(1.0, std::max(exponent - 8, -126 - 7));
  return static_cast<float>(std::nearbyint(x / unit) * unit);
}

TEST(WeightLayout, PairsOfBF16) {
  const int64_t K = 37, N = 19, nr = 8; // odd K: the last pair is half empty
  std::vector<float> rows(N * K), columns(K * N);
  std::mt19937 random(7);
  for (int64_t f = 0; f < N; ++f)
    for (int64_t k = 0; k < K; ++k) {
      uint32_t bits = random();
      if ((bits >> 23 & 255) >= 254) // stays finite when rounded up
        bits &= ~(1u << 30);
      if (k % 5 == 0) // ties
        bits = (bits & 0xffff0000u) | 0x8000u;
      float x;
      memcpy(&x, &bits, 4);
      rows[f * K + k] = columns[k * N + f] = x;
    }
  rows[3] = columns[3 * N] = NAN;
  const gptc_weight_desc descs[] = {
      panel(GPTC_F32, GPTC_PACKED_BF16X2, N, K, 0, N, K, nr),
      panel(GPTC_F32, GPTC_PACKED_BF16X2, K, N, 0, N, K, nr, true)};
  for (const gptc_weight_desc &w : descs) {
    std::vector<char> out =
        pack(w, w.in_out ? columns.data() : rows.data());
    ASSERT_EQ(out.size(), (N + nr - 1) / nr * nr * (K + 1) / 2 * 4);
    for (int64_t f = 0; f < (N + nr - 1) / nr * nr; ++f)
      for (int64_t k = 0; k < K + 1; ++k) {
        int64_t word = f / nr * nr * ((K + 1) / 2) + k / 2 * nr + f % nr;
        uint32_t bits = uint32_t(at<uint16_t>(out, word * 4 + k % 2 * 2)) << 16;
        float got, want = f < N && k < K ? nearestBF16(rows[f * K + k]) : 0;
        memcpy(&got, &bits, 4);
        if (std::isnan(want))
          EXPECT_TRUE(std::isnan(got));
        else
          EXPECT_EQ(got, want) << f << ' ' << k;
      }
  }
}

// i8x4: a scale for each feature, codes to nearest; q8_0x4: the codes of q8_0 plus
// 128, four k in a word.
TEST(WeightLayout, Channels) {
  const int64_t K = 37, N = 19, nr = 8, quads = (K + 3) / 4;
  std::vector<float> rows(N * K), columns(K * N);
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  for (int64_t f = 0; f < N; ++f)
    for (int64_t k = 0; k < K; ++k)
      rows[f * K + k] = columns[k * N + f] = f == 4 ? 0 : normal(random);
  rows[5 * K + 2] = columns[2 * N + 5] = INFINITY;
  rows[6 * K + 2] = columns[2 * N + 6] = NAN;
  const gptc_weight_desc descs[] = {
      panel(GPTC_F32, GPTC_PACKED_I8X4, N, K, 0, N, K, nr),
      panel(GPTC_F32, GPTC_PACKED_I8X4, K, N, 0, N, K, nr, true)};
  for (const gptc_weight_desc &w : descs) {
    std::vector<char> out = pack(w, w.in_out ? columns.data() : rows.data());
    const int64_t bytes = nr * (quads * 4 + 4);
    ASSERT_EQ(int64_t(out.size()), (N + nr - 1) / nr * bytes);
    for (int64_t f = 0; f < (N + nr - 1) / nr * nr; ++f) {
      const int64_t from = f / nr * bytes, j = f % nr;
      const float scale = at<float>(out, from + quads * nr * 4 + j * 4);
      if (f == 5 || f == 6) {
        EXPECT_FALSE(std::isfinite(scale)) << f;
        continue;
      }
      double largest = 0;
      for (int64_t k = 0; f < N && k < K; ++k)
        largest = std::max(largest, std::fabs(double(rows[f * K + k])));
      EXPECT_NEAR(scale, largest / 127, largest * 1e-7) << f;
      for (int64_t k = 0; k < quads * 4; ++k) {
        int code = at<uint8_t>(out, from + (k / 4 * nr + j) * 4 + k % 4) - 128;
        double want = f < N && k < K ? rows[f * K + k] : 0;
        EXPECT_LE(std::abs(code), 127);
        // Half a step, and the rounding of the scale and its inverse.
        EXPECT_NEAR(code * double(scale), want, scale * 0.5001) << f << ' ' << k;
      }
    }
  }
}

TEST(WeightLayout, WordsOfQ8) {
  const int64_t K = 64, N = 11, nr = 4;
  std::vector<char> source(N * K / 32 * 34);
  std::mt19937 random(13);
  for (char &c : source)
    c = static_cast<char>(random());
  auto w = panel(GPTC_Q8_0, GPTC_PACKED_Q8_0X4, N, K, 0, N, K, nr);
  std::vector<char> out = pack(w, source.data());
  for (int64_t f = 0; f < N; ++f)
    for (int64_t k = 0; k < K; ++k) {
      const int64_t block = (f / nr * (K / 32) + k / 32) * nr * 34;
      const size_t from = (f * (K / 32) + k / 32) * 34;
      EXPECT_EQ(at<uint16_t>(out, block + f % nr * 2),
                at<uint16_t>(source, from));
      EXPECT_EQ(at<uint8_t>(out, block + nr * 2 +
                                     (k % 32 / 4 * nr + f % nr) * 4 + k % 4) -
                    128,
                at<int8_t>(source, from + 2 + k % 32));
    }
}

} // namespace
