//===- CheckpointTest.cpp - Kinds of checkpoints and folders --------------===//

#include "TestFiles.h"
#include "TorchFiles.h"
#include <sys/stat.h>

using namespace gptc::checkpoint;
using namespace gptc::checkpoint::test;

namespace {
class Folder : public ::testing::Test {
protected:
  void refuse(std::initializer_list<std::string_view> parts) {
    expectRefused(folder.path.string(), parts);
  }
  void writeIndex(std::string_view weightMap) {
    folder.write("model.safetensors.index.json",
                 "{\"weight_map\":" + std::string(weightMap) + "}");
  }

  TemporaryFolder folder;
  /// Files with one tensor each.
  std::string shardA = safetensors(
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "1234");
  std::string shardB = safetensors(
      R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "5678");
};
} // namespace

TEST_F(Folder, KindByContent) {
  EXPECT_EQ(Checkpoint::open(folder.write("a.bin", shardA))->kind(),
            Kind::Safetensors);
  EXPECT_EQ(
      Checkpoint::open(folder.write("b.bin", GgufBuilder().build()))->kind(),
      Kind::Gguf);
}

TEST_F(Folder, OtherKindsAreNamed) {
  expectRefused(folder.write("model.pt", "\x80\x02\x8a\x0al\xfc\x9c\x46\xf9 j"),
                {"PyTorch file from before 1.6", "torch.save it again"});
  expectRefused(folder.write("a.pickle", "\x80\x04\x95"), {"a pickle"});
  expectRefused(folder.write("old.bin", "tjgg12345678"), {"older than GGUF"});
  expectRefused(folder.write("text", "hello"),
                {"unknown checkpoint", "config.json", ".safetensors", ".gguf"});
  expectRefused(folder.write("empty", ""), {"unknown checkpoint", "empty"});
  expectRefused((folder.path / "absent").string(), {"cannot open"});
  std::string pipe = (folder.path / "pipe").string();
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  expectRefused(pipe, {"regular file"});
}

TEST_F(Folder, SingleFile) {
  refuse({"without config.json", ".gguf"});
  folder.write("config.json", "[]");
  refuse({"config.json: expected an object, got array of 0 values"});
  folder.write("config.json", R"({"model_type": "gpt2"})");
  refuse({"model.safetensors", "pytorch_model.bin", "got none"});
  folder.write("tf_model.h5", "");
  refuse({"tf_model.h5, not read by this version"});
  folder.write("pytorch_model.bin", "PK");
  refuse({"pytorch_model.bin: expected a zip archive of torch.save"});
  folder.write("pytorch_model.bin", TorchBuilder().file());
  auto torch = Checkpoint::open(folder.path.string());
  ASSERT_TRUE(torch) << torch.error().message;
  EXPECT_EQ(torch->kind(), Kind::HfFolder);
  EXPECT_TRUE(torch->find("w"));
  folder.write("model.safetensors", shardA);
  auto checkpoint = Checkpoint::open(folder.path.string());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->kind(), Kind::HfFolder);
  EXPECT_EQ(*checkpoint->configReader().string("model_type"), "gpt2");
  EXPECT_EQ(checkpoint->find("a")->file,
            (folder.path / "model.safetensors").string());

  // A file beside a config.json takes it.
  auto file = Checkpoint::open((folder.path / "model.safetensors").string());
  ASSERT_TRUE(file);
  EXPECT_EQ(file->kind(), Kind::Safetensors);
  EXPECT_EQ(*file->configReader().string("model_type"), "gpt2");
}

TEST_F(Folder, Shards) {
  folder.write("config.json", "{}");
  folder.write("1.safetensors", shardA);
  folder.write("2.safetensors", shardB);
  refuse({"2 other .safetensors files and no index"});

  writeIndex(R"({"b": "2.safetensors", "a": "1.safetensors"})");
  auto checkpoint = Checkpoint::open(folder.path.string());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  ASSERT_EQ(checkpoint->tensors().size(), 2u);
  EXPECT_EQ(checkpoint->find("b")->file,
            (folder.path / "2.safetensors").string());
  EXPECT_EQ(checkpoint->find("b")->data[0], '5');
}

TEST_F(Folder, TorchShards) {
  folder.write("config.json", "{}");
  TorchBuilder second;
  second.pickle = stateDict({tensor("v", "F", "0", 2, "", "[2]", "[1]")});
  folder.write("a.bin", TorchBuilder().file());
  folder.write("b.bin", second.file());
  folder.write("pytorch_model.bin.index.json",
               R"({"weight_map": {"w": "a.bin", "v": "b.bin"}})");
  auto checkpoint = Checkpoint::open(folder.path.string());
  ASSERT_TRUE(checkpoint) << checkpoint.error().message;
  EXPECT_EQ(checkpoint->find("v")->file, (folder.path / "b.bin").string());
}

TEST_F(Folder, ShardIndex) {
  folder.write("config.json", "{}");
  folder.write("1.safetensors", shardA);
  folder.write("2.safetensors", shardB);
  writeIndex("{}");
  refuse({"weight_map", "at least one tensor"});
  writeIndex("[]");
  refuse({"weight_map", "expected an object"});
  writeIndex(R"({"a": 1})");
  refuse({"weight_map.a", "expected a string, got integer 1"});
  writeIndex(R"({"a": "1.safetensors", "a": "2.safetensors"})");
  refuse({"duplicate key 'a'"});
  for (const char *name : {"/1.safetensors", "../1.safetensors", "..", ".", "",
                           "x/1.safetensors", "x\\\\1.safetensors"}) {
    writeIndex("{\"a\": \"" + std::string(name) + "\"}");
    refuse({"weight_map.a", "file name in the same folder"});
  }
  writeIndex(R"({"a": "3.safetensors"})");
  refuse({"3.safetensors", "cannot open"});
  writeIndex(R"({"a": "1.safetensors", "c": "1.safetensors"})");
  refuse({"tensor 'c'", "'1.safetensors'", "no such tensor"});
  writeIndex(R"({"c": "1.safetensors"})");
  refuse({"1.safetensors", "tensor 'a'", "no such tensor"});
  writeIndex(R"({"a": "2.safetensors", "b": "1.safetensors"})");
  refuse({"1.safetensors", "tensor 'a'", "file '2.safetensors'"});

  folder.write("2.safetensors", shardA);
  writeIndex(R"({"a": "1.safetensors", "b": "2.safetensors"})");
  refuse({"2.safetensors", "tensor 'a'", "file '1.safetensors'"});
}
