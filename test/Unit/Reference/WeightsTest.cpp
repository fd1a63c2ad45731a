// Weights: dense globals, host-given ones, and a checkpoint's.
#include "Evaluate.h"
#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace gptc::reference;

namespace {
class WeightsTest : public EvaluateTest {
protected:
  ~WeightsTest() override {
    if (!folder.empty())
      std::filesystem::remove_all(folder);
  }

  /// A .safetensors file with tensor `w` f32 [2, 2] = 1, 2, 3, 4.
  std::string writeCheckpoint() {
    std::string name =
        (std::filesystem::temp_directory_path() / "gptc-weights-XXXXXX")
            .string();
    folder = ::mkdtemp(name.data());
    std::string header =
        R"({"w":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}})";
    std::string file = folder + "/model.safetensors";
    std::ofstream out(file, std::ios::binary);
    uint64_t length = header.size();
    float values[] = {1, 2, 3, 4};
    out.write(reinterpret_cast<const char *>(&length), 8);
    out << header;
    out.write(reinterpret_cast<const char *>(values), sizeof values);
    return file;
  }

  std::string text(const std::string &global) {
    return global + R"mlir(
      func.func @f() -> tensor<2x2xf32> {
        %w = ml_program.global_load_const @w : tensor<2x2xf32>
        return %w : tensor<2x2xf32>
      })mlir";
  }
  std::string external(const std::string &stored) {
    return text("ml_program.global private @w(#ml_program.extern : "
                "tensor<2x2xf32>) : tensor<2x2xf32> {gpt.stored = " +
                stored + "}");
  }

  std::string folder;
};
} // namespace

TEST_F(WeightsTest, DenseGlobal) {
  expectNear(run(text("ml_program.global private @w(dense<[[1.0, 2.0], [3.0, "
                      "4.0]]> : tensor<2x2xf32>) : tensor<2x2xf32>"),
                 {}),
             {1, 2, 3, 4});
}

TEST_F(WeightsTest, HostGiven) {
  std::string module = external("#gpt.stored<\"\", \"w\", f32>");
  NamedWeights host({{"w", makeTensor({2, 2}, {5, 6, 7, 8})}});
  expectNear(run(module, {}, &host), {5, 6, 7, 8});
  NamedWeights none;
  expectContains(error(module, {}, &none),
                 "expected the host to give a weight named 'w', got none");
  NamedWeights wrong({{"w", makeTensor({2, 3}, repeat(6, 0))}});
  expectContains(error(module, {}, &wrong), "got shape 2x3");
  expectContains(error(module, {}), "expected weights for 'w', got none");
}

TEST_F(WeightsTest, WhatNobodyUsesNeedNotExist) {
  expectNear(run(R"mlir(
      ml_program.global private @w(#ml_program.extern : tensor<2xf32>) : tensor<2xf32>
      func.func @f() -> tensor<1xf32> {
        %w = ml_program.global_load_const @w : tensor<2xf32>
        %one = arith.constant dense<1.0> : tensor<1xf32>
        return %one : tensor<1xf32>
      })mlir",
                 {}),
             {1});
}

TEST_F(WeightsTest, FromACheckpoint) {
  auto checkpoint = gptc::checkpoint::Checkpoint::open(writeCheckpoint());
  ASSERT_TRUE(bool(checkpoint)) << checkpoint.error().message;
  CheckpointWeights weights(*checkpoint);
  expectNear(run(external("#gpt.stored<\"model.safetensors\", \"w\", f32>"), {},
                 &weights),
             {1, 2, 3, 4});
  expectContains(
      error(external("#gpt.stored<\"model.safetensors\", \"v\", f32>"), {},
            &weights),
      "expected a tensor 'v'");
  expectContains(
      error(external("#gpt.stored<\"other.safetensors\", \"w\", f32>"), {},
            &weights),
      "in file other.safetensors");
  expectContains(
      error(external("#gpt.stored<\"model.safetensors\", \"w\", f16>"), {},
            &weights),
      "stored as f16, found f32");
}
