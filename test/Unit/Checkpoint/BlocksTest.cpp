//===- BlocksTest.cpp - Quantised formats against another reader ----------===//
//
// test/Families/blocks holds a tensor of each block format, and beside it the
// float32 numbers that gguf-py reads from it. Ours are the same bits: the only
// rounding is that of the last operation (Storage.h, KQuants.cpp).
//
//===----------------------------------------------------------------------===//

#include "TestFiles.h"

using namespace gptc::checkpoint;
using namespace gptc::checkpoint::test;

static std::vector<float> numbersOf(const TensorInfo &tensor) {
  std::vector<float> values(tensor.shape[0] * tensor.shape[1]);
  EXPECT_TRUE(
      dequantizeRow(tensor.storage, tensor.data, values.size(), values.data()));
  return values;
}

TEST(Blocks, AreTheNumbersThatGgufPyReads) {
  Expected<Checkpoint> file =
      Checkpoint::open(GPTC_FAMILIES_DIR "/blocks/blocks.gguf");
  ASSERT_TRUE(file) << file.error().message;
  int formats = 0;
  for (const TensorInfo &tensor : file->tensors()) {
    const TensorInfo *expected = file->find(tensor.name + ".f32");
    if (!expected)
      continue;
    SCOPED_TRACE(tensor.name);
    EXPECT_EQ(storageName(tensor.storage), tensor.name);
    EXPECT_EQ(numbersOf(tensor), numbersOf(*expected));
    ++formats;
  }
  EXPECT_EQ(formats, 10);
}

// What packages hold of a format that no kernel reads means the same numbers.
TEST(Blocks, ConvertedRowsKeepThem) {
  Expected<Checkpoint> file =
      Checkpoint::open(GPTC_FAMILIES_DIR "/blocks/blocks.gguf");
  ASSERT_TRUE(file) << file.error().message;
  for (const TensorInfo &tensor : file->tensors()) {
    SCOPED_TRACE(tensor.name);
    Storage packed = packedFrom(tensor.storage);
    EXPECT_LE(packed, Storage::Q4_1);
    size_t count = tensor.shape[0] * tensor.shape[1];
    std::string bytes(*rowBytes(packed, count), '\xaa');
    auto *target = reinterpret_cast<uint8_t *>(bytes.data());
    ASSERT_TRUE(convertRow(tensor.storage, tensor.data, count, target));
    std::vector<float> values(count);
    ASSERT_TRUE(dequantizeRow(packed, target, count, values.data()));
    EXPECT_EQ(values, numbersOf(tensor));
  }
}
