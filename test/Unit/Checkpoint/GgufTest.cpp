//===- GgufTest.cpp - Legal and broken GGUF files -------------------------===//

#include "TestFiles.h"

using namespace gptc::checkpoint;
using namespace gptc::checkpoint::test;

namespace {

constexpr uint32_t typeF32 = 0, typeQ4_1 = 3, typeQ4_K = 12, typeQ8_K = 15;

class GgufFile : public ::testing::Test {
protected:
  void refuse(const std::string &bytes,
              std::initializer_list<std::string_view> parts) {
    expectRefused(folder.write("model.gguf", bytes), parts);
  }
  Expected<Checkpoint> open(const std::string &bytes) {
    return Checkpoint::open(folder.write("model.gguf", bytes));
  }
  void refuseValue(uint32_t type, std::string_view value,
                   std::initializer_list<std::string_view> parts) {
    refuse(GgufBuilder().pair("k", type, value).build(), parts);
  }

  TemporaryFolder folder;
};

GgufBuilder withTensor(std::initializer_list<uint64_t> dims,
                       uint32_t type = typeF32, uint64_t offset = 0) {
  GgufBuilder file;
  file.tensor("w", dims, type, offset);
  file.data = std::string(256, '\0');
  return file;
}

} // namespace

TEST_F(GgufFile, MagicAndVersion) {
  refuse("", {"magic", "got ''"});
  refuse("GGUX1234", {"magic", "'GGUX'"});
  refuse("GGUF", {"version", "4 bytes"});
  refuse("GGUF" + u32(3), {"header of 24 bytes", "8 bytes"});
  GgufBuilder file;
  file.version = u32(1);
  refuse(file.build(), {"GGUF version 3, got 1"});
  file.version = u32(2);
  refuse(file.build(), {"GGUF version 3, got 2"});
  file.version = std::string("\0\0\0\3", 4);
  refuse(file.build(), {"big-endian"});
}

TEST_F(GgufFile, Counts) {
  GgufBuilder file;
  file.tensorCount = uint64_t{1} << 63;
  refuse(file.build(), {"tensor count", "9223372036854775808"});
  file.tensorCount = 1;
  refuse(file.build(), {"tensor count", "got 1"});
  file.tensorCount = 0;
  file.pairCount = uint64_t{1} << 63;
  refuse(file.build(), {"metadata count", "9223372036854775808"});
}

TEST_F(GgufFile, Keys) {
  refuse(GgufBuilder().pair("", 0, "1").build(), {"key 1 of 1", "got 0"});
  refuse(GgufBuilder().pair("a", 0, "1").pair("a", 0, "1").build(),
         {"key 'a'", "duplicate"});
  GgufBuilder file;
  file.pairs = u64(uint64_t{1} << 63) + std::string(24, 'x');
  file.pairCount = 1;
  refuse(file.build(), {"key 1 of 1", "beyond the end"});
}

TEST_F(GgufFile, Values) {
  refuseValue(999, "12345678", {"key 'k'", "0 to 12, got 999"});
  refuseValue(13, "12345678", {"key 'k'", "got 13"});
  refuseValue(7, std::string(24, '\2'), {"key 'k'", "bool", "got 2"});
  refuseValue(8, u64(uint64_t{1} << 63), {"key 'k'", "beyond the end"});
  refuseValue(9, u32(999) + u64(1), {"key 'k'", "0 to 12, got 999"});
  refuseValue(9, u32(4) + u64(uint64_t{1} << 62),
              {"key 'k'", "uint32", "4611686018427387904"});
  refuseValue(9, u32(8) + u64(uint64_t{1} << 61), {"key 'k'", "string"});
  refuseValue(9, u32(8) + u64(2) + u64(1) + "a" + u64(1000) + "b",
              {"key 'k'", "beyond the end"});
  refuseValue(9, u32(7) + u64(2) + "\1\3", {"element 1", "bool", "got 3"});
  std::string nested;
  for (int i = 0; i < 20; ++i)
    nested += u32(9) + u64(1);
  refuseValue(9, nested + u32(0) + u64(0), {"key 'k'", "nested deeper"});
}

TEST_F(GgufFile, Alignment) {
  auto aligned = [](uint32_t type, const std::string &value) {
    GgufBuilder file = withTensor({4});
    file.pair("general.alignment", type, value);
    return file.build();
  };
  refuse(aligned(4, u32(0)), {"general.alignment", "uint32 0"});
  refuse(aligned(4, u32(3)), {"general.alignment", "uint32 3"});
  refuse(aligned(8, GgufBuilder::text("32")),
         {"general.alignment", "string '32'"});
  refuse(aligned(10, u64(32)), {"general.alignment", "uint64 32"});
  // The data begins after the end of the file.
  refuse(aligned(4, u32(0x80000000)), {"tensor 'w'", "0 bytes of data"});
}

TEST_F(GgufFile, Dimensions) {
  refuse(withTensor({4, 0}).build(), {"tensor 'w'", "dimension 1", "got 0"});
  refuse(withTensor({1, 1, 1, 1, 1}).build(),
         {"tensor 'w'", "at most 4 dimensions, got 5"});
  refuse(withTensor({uint64_t{1} << 63}).build(),
         {"tensor 'w'", "9223372036854775808"});
  refuse(withTensor({uint64_t{1} << 32, uint64_t{1} << 32}).build(),
         {"tensor 'w'", "more than 2^63 bytes"});
  refuse(withTensor({33}, typeQ4_1).build(),
         {"tensor 'w'", "multiple of 32", "q4_1"});
  refuse(withTensor({}, typeQ4_1).build(), {"tensor 'w'", "multiple of 32"});
  refuse(withTensor({128}, typeQ4_K).build(),
         {"tensor 'w'", "multiple of 256", "q4_k"});
  refuse(withTensor({512}, typeQ4_K).build(),
         {"tensor 'w'", "288 bytes", "256 bytes"});
  refuse(withTensor({128}).build(), {"tensor 'w'", "512 bytes", "256 bytes"});
}

TEST_F(GgufFile, TensorTypes) {
  refuse(withTensor({256}, typeQ8_K).build(),
         {"tensor 'w'", "type 15 (Q8_K)", "not read by this version"});
  refuse(withTensor({4}, 4).build(), {"type 4 (Q4_2)"});
  refuse(withTensor({4}, 31).build(), {"type 31 (unknown)"});
  refuse(withTensor({4}, 999).build(), {"type 999 (unknown)"});
}

TEST_F(GgufFile, TensorPlaces) {
  refuse(withTensor({4}, typeF32, 4).build(), {"tensor 'w'", "multiple", "4"});
  refuse(withTensor({4}, typeF32, 256).build(), {"tensor 'w'", "offset 256"});
  refuse(withTensor({4}, typeF32, ~uint64_t{31}).build(),
         {"tensor 'w'", "offset 18446744073709551584"});
  GgufBuilder file = withTensor({16});
  refuse(GgufBuilder(file).tensor("x", {4}, typeF32, 32).build(),
         {"tensor 'x'", "overlap", "tensor 'w'"});
  refuse(GgufBuilder(file).tensor("w", {4}, typeF32, 64).build(),
         {"tensor 'w'", "duplicate name"});
  refuse(GgufBuilder(file).tensor("", {4}, typeF32, 64).build(),
         {"tensor 2 of 2", "got 0"});
}

TEST_F(GgufFile, PartOfSeveral) {
  refuse(GgufBuilder().pair("split.count", 2, littleEndian(3, 2)).build(),
         {"split.count", "one of 3 parts"});
}

TEST_F(GgufFile, EveryValueType) {
  std::string words =
      u32(8) + u64(2) + GgufBuilder::text("ab") + GgufBuilder::text("");
  std::string nested = u32(9) + u64(2) + u32(0) + u64(1) + "x" + words;
  auto file = open(
      GgufBuilder()
          .pair("u8", 0, "\xff")
          .pair("i8", 1, "\xff")
          .pair("u16", 2, "\xff\xff")
          .pair("i16", 3, "\xfe\xff")
          .pair("u32", 4, u32(4000000000))
          .pair("i32", 5, u32(~0u))
          .pair("f32", 6, f32(0.1f))
          .pair("bool", 7, "\1")
          .pair("string", 8, GgufBuilder::text("llama"))
          .pair("words", 9, words)
          .pair("u64", 10, u64(~uint64_t{0}))
          .pair("i64", 11, u64(~uint64_t{0}))
          .pair("f64", 12, u64(std::bit_cast<uint64_t>(0.1)))
          .pair("nested", 9, nested)
          .pair("shorts", 9, u32(3) + u64(2) + std::string("\xfd\xff\3\0", 4))
          .pair("reals", 9, u32(6) + u64(2) + f32(1) + f32(2.5))
          .build());
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->kind(), Kind::Gguf);
  const gguf::Metadata &metadata = file->metadata();
  EXPECT_EQ(metadata.entries().size(), 16u);
  EXPECT_EQ(*metadata.integer("u8"), 255);
  EXPECT_EQ(*metadata.integer("i8"), -1);
  EXPECT_EQ(*metadata.integer("u16"), 65535);
  EXPECT_EQ(*metadata.integer("i16"), -2);
  EXPECT_EQ(*metadata.integer("u32"), 4000000000);
  EXPECT_EQ(*metadata.integer("i32"), -1);
  EXPECT_EQ(*metadata.real("f32"), 0.1f);
  EXPECT_TRUE(*metadata.boolean("bool"));
  EXPECT_EQ(*metadata.string("string"), "llama");
  EXPECT_EQ(*metadata.integer("i64"), -1);
  EXPECT_EQ(*metadata.real("f64"), 0.1);
  EXPECT_EQ(*metadata.real("u16"), 65535.0);
  EXPECT_EQ((*metadata.strings("words"))->strings,
            (std::vector<std::string_view>{"ab", ""}));
  EXPECT_EQ((*metadata.array("nested"))->count, 2u);
  const gguf::Array &shorts = **metadata.array("shorts");
  ASSERT_TRUE(shorts.isInteger());
  EXPECT_EQ(shorts.integerAt(0), -3);
  EXPECT_EQ(shorts.integerAt(1), 3);
  const gguf::Array &reals = **metadata.array("reals");
  ASSERT_TRUE(reals.isReal());
  EXPECT_EQ(reals.realAt(1), 2.5);

  EXPECT_EQ(*metadata.integerOr("absent", 9), 9);
  EXPECT_EQ(metadata.integer("absent").error().message,
            metadata.where() + ": key 'absent': expected an integer, got no "
                               "such key");
  EXPECT_EQ(metadata.integer("u64").error().message,
            metadata.where() + ": key 'u64': expected an integer, got uint64 "
                               "18446744073709551615");
  EXPECT_EQ(metadata.strings("reals").error().message,
            metadata.where() + ": key 'reals': expected an array of strings, "
                               "got array of 2 float32");
}

TEST_F(GgufFile, TensorsAreViews) {
  GgufBuilder builder;
  builder.alignment = 64;
  builder.pair("general.alignment", 4, u32(64));
  builder.tensor("w", {2, 3}, typeF32, 64).tensor("b", {32}, typeQ4_1, 0);
  builder.data = std::string(64, '\0') + f32(1) + f32(2) + f32(3) + f32(4) +
                 f32(5) + f32(6);
  auto file = open(builder.build());
  ASSERT_TRUE(file) << file.error().message;
  // Moving the checkpoint keeps its views.
  Checkpoint moved = std::move(*file);
  const TensorInfo *w = moved.find("w");
  ASSERT_TRUE(w);
  EXPECT_EQ(w->shape, (std::vector<int64_t>{3, 2})); // innermost last
  EXPECT_EQ(w->bytes, 24u);
  EXPECT_EQ(w->offset % 64, 0u);
  float values[6];
  ASSERT_TRUE(dequantizeRow(w->storage, w->data, 6, values));
  EXPECT_EQ(values[5], 6.0f);
  EXPECT_EQ(moved.find("b")->storage, Storage::Q4_1);
  EXPECT_EQ(*moved.metadata().integer("general.alignment"), 64);
}

// Every truncation of a good file is refused, and no changed byte crashes.
TEST_F(GgufFile, TruncationAndDamage) {
  GgufBuilder builder;
  builder.pair("a", 9, u32(8) + u64(1) + GgufBuilder::text("x"));
  builder.pair("b", 4, u32(7));
  builder.tensor("w", {2, 2}, typeF32, 0);
  builder.data = f32(1) + f32(2) + f32(3) + f32(4);
  std::string good = builder.build();
  ASSERT_TRUE(open(good));
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(open(good.substr(0, size))) << size;
  for (size_t i = 0; i < good.size(); ++i)
    for (char flip : {'\x01', '\x80', '\xff'}) {
      std::string damaged = good;
      damaged[i] ^= flip;
      (void)open(damaged);
    }
}
