//===- NpyTest.cpp - NumPy's files ----------------------------------------===//

#include "gptc/Runtime/Host/Npy.h"
#include "gptc/Runtime/Host/Files.h"
#include <filesystem>
#include <gtest/gtest.h>
#include <random>

using namespace gptc::host;

namespace {

Array array(std::string name, std::vector<int64_t> shape,
            std::vector<float> values) {
  Array a;
  a.name = std::move(name);
  a.shape = std::move(shape);
  auto *bytes = reinterpret_cast<const uint8_t *>(values.data());
  a.data.assign(bytes, bytes + values.size() * 4);
  return a;
}

std::vector<uint8_t> npy(const std::string &dictionary,
                         const std::string &data) {
  std::string text("\x93NUMPY\1\0", 8);
  text += char(dictionary.size() & 255);
  text += char(dictionary.size() >> 8);
  text += dictionary + data;
  return {text.begin(), text.end()};
}

TEST(Npy, RoundTrips) {
  std::vector<Array> arrays = {
      array("a", {2, 3}, {1, 2, 3, 4, 5, 6}), array("empty", {0, 4}, {}),
      array("scalar", {}, {7}), array("row", {2}, {8, 9})};
  std::string error;
  auto back = parseNpz(serializeNpz(arrays), error);
  ASSERT_TRUE(back) << error;
  ASSERT_EQ(back->size(), arrays.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    EXPECT_EQ((*back)[i].name, arrays[i].name);
    EXPECT_EQ((*back)[i].shape, arrays[i].shape);
    EXPECT_EQ((*back)[i].data, arrays[i].data);
  }
  EXPECT_EQ(npyHeader(GPTC_F32, arrays[0].shape).size() % 64, 0u);
}

TEST(Npy, WidensAndNarrows) {
  std::string error;
  std::string wide("\5\0\0\0\0\0\0\0", 8);
  auto a = parseNpy(
      npy("{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }", wide),
      error);
  ASSERT_TRUE(a) << error;
  EXPECT_EQ(a->dtype, GPTC_I32);
  EXPECT_EQ(a->data, (std::vector<uint8_t>{5, 0, 0, 0}));
  wide[4] = 1;
  EXPECT_FALSE(parseNpy(
      npy("{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }", wide),
      error));
  EXPECT_EQ(error, "expected integers that fit 32 bits");
}

TEST(Npy, Refusals) {
  const char *headers[] = {
      "{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }",
      "{'descr': '<f40', 'fortran_order': False, 'shape': (1,), }",
      "{'descr': '<f2', 'fortran_order': False, 'shape': (2,), }",
      "{'descr': '<f4', 'fortran_order': True, 'shape': (1, 1), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, "
      "4294967296, 4294967296), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': "
      "(1,1,1,1,1,1,1,1,1), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (1",
      "{'descr': '<f4', 'shape': (1,), }",
      "{'descr': ",
      ""};
  for (const char *header : headers) {
    std::string error;
    EXPECT_FALSE(parseNpy(npy(header, "1234"), error)) << header;
    EXPECT_FALSE(error.empty());
  }
}

TEST(Npz, ReadsDeflatedArchives) {
  std::string path = GPTC_GOLDEN "/attention/attn_01_d8_65x65_h4kv2_causal.npz";
  if (!std::filesystem::exists(path))
    GTEST_SKIP() << "no " << path;
  std::string error;
  auto bytes = readFile(path, error);
  ASSERT_TRUE(bytes) << error;
  auto arrays = parseNpz(*bytes, error);
  ASSERT_TRUE(arrays) << error;
  EXPECT_EQ(arrays->front().name, "q");
  EXPECT_EQ(arrays->front().shape, (std::vector<int64_t>{4, 65, 8}));
  // Any damage is found; none of it crashes.
  std::mt19937 random(1);
  size_t accepted = 0;
  for (int i = 0; i < 300; ++i) {
    std::vector<uint8_t> bad = *bytes;
    bad[random() % bad.size()] ^= 1 << random() % 8;
    accepted += parseNpz(bad, error).has_value();
    bad.resize(random() % bad.size());
    EXPECT_FALSE(parseNpz(bad, error));
  }
  EXPECT_LT(accepted, 30u) << "only bits that mean nothing may change";
}

} // namespace
