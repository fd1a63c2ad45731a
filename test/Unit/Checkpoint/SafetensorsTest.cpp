//===- SafetensorsTest.cpp - Legal and broken headers ---------------------===//

#include "TestFiles.h"

using namespace gptc::checkpoint;
using namespace gptc::checkpoint::test;

namespace {
class Safetensors : public ::testing::Test {
protected:
  void refuse(std::string_view bytes,
              std::initializer_list<std::string_view> parts) {
    expectRefused(folder.write("model.safetensors", bytes), parts);
  }
  /// One tensor 'w' with the given members, and `data`.
  void refuseTensor(std::string_view members, std::string_view data,
                    std::initializer_list<std::string_view> parts) {
    refuse(safetensors("{\"w\":{" + std::string(members) + "}}", data), parts);
  }
  Expected<Checkpoint> open(std::string_view bytes) {
    return Checkpoint::open(folder.write("model.safetensors", bytes));
  }

  TemporaryFolder folder;
};
} // namespace

TEST_F(Safetensors, HeaderLength) {
  refuse("", {"header length", "got a file of 0 bytes"});
  refuse("1234567", {"header length", "got a file of 7 bytes"});
  refuse(std::string(8, '\xff'), {"header length", "18446744073709551615"});
  refuse(std::string(8, '\xff') + "{}", {"header length", "at most 2"});
  refuse(u64(0), {"expected '{'", "an empty header"});
  refuse(u64(10) + "{}", {"header length: expected at most 2", "got 10"});
  refuse(u64(2) + "[]", {"expected '{'", "'['"});
  refuse(u64(3) + " {}", {"expected '{'"});
}

TEST_F(Safetensors, HeaderJson) {
  refuse(safetensors("{"), {"not valid json"});
  refuse(safetensors("{\"a\":" + std::string(100000, '[')),
         {"nested deeper than 64"});
  refuse(safetensors("{\"w\":{\"a\":1,\"a\":2}}"), {"duplicate key 'a'"});
  refuse(
      safetensors(R"({"w":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},)"
                  R"("w":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}})"),
      {"duplicate key 'w'"});
  refuse(safetensors("{\"w\":3}"), {"tensor 'w'", "got integer 3"});
  refuse(safetensors("{\"__metadata__\":3}"), {"__metadata__"});
  refuse(safetensors(R"({"":{}})"), {"expected a name"});
}

TEST_F(Safetensors, Dtype) {
  refuseTensor(R"("dtype":"F33","shape":[1],"data_offsets":[0,4])", "1234",
               {"tensor 'w'", "dtype", "'F33'"});
  refuseTensor(R"("shape":[1],"data_offsets":[0,4])", "1234",
               {"tensor 'w'", "dtype", "no such key"});
  refuseTensor(R"("dtype":1,"shape":[1],"data_offsets":[0,4])", "1234",
               {"tensor 'w'", "dtype", "integer 1"});
}

TEST_F(Safetensors, Shape) {
  refuseTensor(R"("dtype":"F32","shape":[32,8],"data_offsets":[0,65536])",
               std::string(65536, '\0'),
               {"tensor 'w'", "1024 bytes", "[32, 8]", "65536 bytes"});
  refuseTensor(R"("dtype":"F32","shape":[4294967296,4294967296],)"
               R"("data_offsets":[0,0])",
               "", {"tensor 'w'", "more than 2^63 bytes"});
  // A zero must not hide the overflow of the others.
  refuseTensor(R"("dtype":"F32","shape":[4294967296,4294967296,0],)"
               R"("data_offsets":[0,0])",
               "", {"tensor 'w'", "more than 2^63 bytes"});
  refuseTensor(R"("dtype":"F32","shape":[-1],"data_offsets":[0,0])", "",
               {"tensor 'w'", "shape", "integer -1"});
  refuseTensor(R"("dtype":"F32","shape":[1.5],"data_offsets":[0,4])", "1234",
               {"tensor 'w'", "shape", "number 1.5"});
  refuseTensor(R"("dtype":"F32","shape":[18446744073709551615],)"
               R"("data_offsets":[0,4])",
               "1234", {"tensor 'w'", "shape", "18446744073709551615"});
  refuseTensor(R"("dtype":"F32","shape":4,"data_offsets":[0,4])", "1234",
               {"tensor 'w'", "shape", "integer 4"});
  refuseTensor(
      R"("dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4])",
      "1234", {"tensor 'w'", "at most 8 dimensions, got 9"});
}

TEST_F(Safetensors, Span) {
  for (const char *span : {"[0]", "[]", "[0,1,2]", "4", "[0,\"4\"]", "[0,4.0]",
                           "[-4,0]", "[0,18446744073709551615]"})
    refuseTensor(R"("dtype":"F32","shape":[1],"data_offsets":)" +
                     std::string(span),
                 "1234", {"tensor 'w'", "data_offsets"});
  refuseTensor(R"("dtype":"F32","shape":[1],"data_offsets":[8,4])", "12345678",
               {"tensor 'w'", "begin <= end", "[8, 4]"});
  refuseTensor(R"("dtype":"F32","shape":[2],"data_offsets":[0,8])", "1234567",
               {"tensor 'w'", "at most 7", "[0, 8]", "truncated"});
  refuseTensor(R"("dtype":"F32","shape":[1],"data_offsets":[4,8])", "12345678",
               {"tensor 'w'", "begin at 0", "got 4"});
}

TEST_F(Safetensors, SpansTogether) {
  auto two = [](const char *second, std::string_view data) {
    return safetensors(
        R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
        R"("b":{"dtype":"F32","shape":[1],"data_offsets":)" +
            std::string(second) + "}}",
        data);
  };
  refuse(two("[4,8]", "12345678"), {"tensor 'b'", "overlap", "tensor 'a'"});
  refuse(two("[0,4]", "12345678"), {"tensor 'a'", "overlap", "tensor 'b'"});
  refuse(two("[12,16]", "1234567812345678"), {"tensor 'b'", "got 12"});
  refuse(two("[8,12]", "123456781234567"),
         {"after the last tensor, 'b'", "3 more bytes"});
  refuse(safetensors("{}", "1"), {"without tensors", "1 more bytes"});
}

TEST_F(Safetensors, LegalFiles) {
  auto empty = open(safetensors("{}"));
  ASSERT_TRUE(empty) << empty.error().message;
  EXPECT_TRUE(empty->tensors().empty());

  auto file = open(safetensors(
      R"({"__metadata__":{},)"
      R"("b":{"dtype":"F32","shape":[1,2],"data_offsets":[2,10]},)"
      R"("none":{"dtype":"F32","shape":[0,4],"data_offsets":[0,0]},)"
      R"("s":{"dtype":"BF16","shape":[],"data_offsets":[0,2]}}     )",
      "\x80\x3f" + f32(2) + f32(3)));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->kind(), Kind::Safetensors);
  ASSERT_EQ(file->tensors().size(), 3u);
  const TensorInfo *b = file->find("b");
  ASSERT_TRUE(b);
  EXPECT_EQ(b->shape, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(b->storage, Storage::F32);
  EXPECT_EQ(b->bytes, 8u);
  EXPECT_EQ(file->find("none")->bytes, 0u);
  const TensorInfo *s = file->find("s");
  EXPECT_TRUE(s->shape.empty());
  float one = 0;
  EXPECT_TRUE(dequantizeRow(s->storage, s->data, 1, &one));
  EXPECT_EQ(one, 1.0f);
  EXPECT_EQ(file->find("c"), nullptr);
}

// Header lengths put the data at every alignment; the values stay the same.
TEST_F(Safetensors, AnyAlignment) {
  for (size_t spaces = 0; spaces < 16; ++spaces) {
    auto file = open(safetensors(
        R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})" +
            std::string(spaces, ' '),
        f32(0.1f) + f32(-3)));
    ASSERT_TRUE(file) << file.error().message;
    const TensorInfo *w = file->find("w");
    float values[2];
    ASSERT_TRUE(dequantizeRow(w->storage, w->data, 2, values));
    EXPECT_EQ(values[0], 0.1f);
    EXPECT_EQ(values[1], -3.0f);
  }
}

// Every truncation of a good file is refused, and none of them crashes.
TEST_F(Safetensors, Truncation) {
  std::string good = safetensors(
      R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", "12345678");
  ASSERT_TRUE(open(good));
  for (size_t size = 0; size < good.size(); ++size)
    EXPECT_FALSE(open(good.substr(0, size))) << size;
}
