//===- LlmcBinTest.cpp - Legal and broken files of llm.c ------------------===//

#include "TestFiles.h"

using namespace gptc::checkpoint;
using namespace gptc::checkpoint::test;

namespace {
/// magic, version, context, vocabulary, layers, heads, channels, padded
/// vocabulary: T 3, V 5, L 2, C 4, Vp 8.
struct LlmcBuilder {
  int32_t header[8] = {20240326, 3, 3, 5, 2, 2, 4, 8};
  /// Elements: (Vp + T) C + L (12 C^2 + 13 C) + 2 C.
  static constexpr size_t elements = 11 * 4 + 2 * (12 * 16 + 13 * 4) + 2 * 4;

  LlmcBuilder &set(size_t index, int32_t value) {
    header[index] = value;
    return *this;
  }
  /// Element i is the number i.
  std::string build() const {
    std::string file;
    for (int32_t word : header)
      file += u32(static_cast<uint32_t>(word));
    file.resize(1024);
    for (size_t i = 0; i < elements; ++i) {
      std::string value = f32(static_cast<float>(i));
      file += header[1] == 5 ? value.substr(2) : value;
    }
    return file;
  }
};

class Llmc : public ::testing::Test {
protected:
  void refuse(const LlmcBuilder &builder,
              std::initializer_list<std::string_view> parts) {
    expectRefused(folder.write("model.bin", builder.build()), parts);
  }
  Expected<Checkpoint> open(std::string_view bytes) {
    return Checkpoint::open(folder.write("model.bin", bytes));
  }
  TemporaryFolder folder;
};
} // namespace

static float firstOf(const Checkpoint &checkpoint, std::string_view name) {
  const TensorInfo *tensor = checkpoint.find(name);
  float value = -1;
  EXPECT_TRUE(tensor && dequantizeRow(tensor->storage, tensor->data, 1, &value))
      << name;
  return value;
}

TEST_F(Llmc, Order) {
  auto file = open(LlmcBuilder().build());
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->tensors().size(), 28u);
  EXPECT_EQ(file->find("wte.weight")->shape, (std::vector<int64_t>{5, 4}));
  EXPECT_EQ(firstOf(*file, "wte.weight"), 0);
  EXPECT_EQ(firstOf(*file, "wpe.weight"), 8 * 4);
  EXPECT_EQ(firstOf(*file, "h.0.ln_1.weight"), 44);
  EXPECT_EQ(firstOf(*file, "h.1.ln_1.weight"), 48);
  EXPECT_EQ(firstOf(*file, "h.0.ln_1.bias"), 52);
  EXPECT_EQ(firstOf(*file, "h.0.attn.c_attn.weight"), 60);
  EXPECT_EQ(firstOf(*file, "h.1.attn.c_attn.weight"), 60 + 48);
  EXPECT_EQ(firstOf(*file, "h.0.attn.c_attn.bias"), 156);
  EXPECT_EQ(firstOf(*file, "h.0.attn.c_proj.weight"), 180);
  EXPECT_EQ(firstOf(*file, "h.0.attn.c_proj.bias"), 212);
  EXPECT_EQ(firstOf(*file, "h.0.ln_2.weight"), 220);
  EXPECT_EQ(firstOf(*file, "h.0.ln_2.bias"), 228);
  EXPECT_EQ(firstOf(*file, "h.0.mlp.c_fc.weight"), 236);
  EXPECT_EQ(firstOf(*file, "h.0.mlp.c_fc.bias"), 364);
  EXPECT_EQ(firstOf(*file, "h.0.mlp.c_proj.weight"), 396);
  EXPECT_EQ(firstOf(*file, "h.1.mlp.c_proj.weight"), 460);
  EXPECT_EQ(file->find("h.1.mlp.c_proj.weight")->shape,
            (std::vector<int64_t>{4, 16}));
  EXPECT_EQ(firstOf(*file, "h.0.mlp.c_proj.bias"), 524);
  EXPECT_EQ(firstOf(*file, "ln_f.weight"), 532);
  EXPECT_EQ(firstOf(*file, "ln_f.bias"), 536);
  EXPECT_EQ(file->find("ln_f.bias")->offset + 16, 1024 + 4 * 540u);
  EXPECT_EQ(*file->configReader().integer("num_heads"), 2);

  auto half = open(LlmcBuilder().set(1, 5).build());
  ASSERT_TRUE(half) << half.error().message;
  EXPECT_EQ(firstOf(*half, "h.0.ln_1.weight"), 44);
}

TEST_F(Llmc, Header) {
  refuse(LlmcBuilder().set(0, 20240327), {"unknown checkpoint"});
  for (int32_t version : {0, 1, 2, 4, 6, 99, -3})
    refuse(LlmcBuilder().set(1, version),
           {"version 3 (f32) or 5 (bf16), got " + std::to_string(version)});
  const char *names[] = {"max_seq_len", "vocab_size", "num_layers",
                         "num_heads",   "channels",   "padded_vocab_size"};
  for (size_t i = 0; i < 6; ++i)
    for (int32_t value : {0, -1, INT32_MIN})
      refuse(LlmcBuilder().set(2 + i, value),
             {names[i], "at least 1, got " + std::to_string(value)});
  refuse(LlmcBuilder().set(5, 3), {"channels", "multiple of num_heads (3)"});
  refuse(LlmcBuilder().set(7, 4), {"padded_vocab_size", "at least vocab_size"});
}

TEST_F(Llmc, Length) {
  refuse(LlmcBuilder().set(4, 3), {"truncated", "got a file of 3184"});
  refuse(LlmcBuilder().set(4, 1), {"got a file of 3184; the file is damaged"});
  refuse(LlmcBuilder().set(1, 5).set(4, 3), {"truncated"});
  refuse(LlmcBuilder().set(4, INT32_MAX), {"truncated"});
  // 12 C^2 L is above 2^64; in 64 bits it would wrap.
  refuse(LlmcBuilder().set(4, INT32_MAX).set(6, 2147483646),
         {"more than 2^64 bytes"});
  refuse(LlmcBuilder().set(4, 1 << 30).set(6, 1 << 30), {"2^64 bytes"});
  std::string good = LlmcBuilder().build();
  for (size_t size = 0; size < good.size(); size += size < 40 ? 1 : 97)
    EXPECT_FALSE(open(good.substr(0, size))) << size;
  expectRefused(folder.write("model.bin", good + "x"), {"damaged"});
  expectRefused(folder.write("model.bin", good.substr(0, 100)),
                {"header: expected 1024 bytes, got a file of 100"});
}
