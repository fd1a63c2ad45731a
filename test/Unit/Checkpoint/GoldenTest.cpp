//===- GoldenTest.cpp - The golden models' files --------------------------===//
//
// The same weights lie in several formats; each must read as the f32 one,
// rounded as the format rounds.
//
//===----------------------------------------------------------------------===//

#include "TestFiles.h"
#include <cmath>

using namespace gptc::checkpoint;
using namespace gptc::checkpoint::test;

static std::string golden(const std::string &name) {
  return std::string(GPTC_GOLDEN_DIR) + "/" + name;
}

static Checkpoint open(const std::string &name) {
  Expected<Checkpoint> checkpoint = Checkpoint::open(golden(name));
  if (!checkpoint) {
    ADD_FAILURE() << checkpoint.error().message;
    std::abort();
  }
  return std::move(*checkpoint);
}

static std::vector<float> valuesOf(const Checkpoint &checkpoint,
                                   std::string_view name) {
  const TensorInfo *tensor = checkpoint.find(name);
  if (!tensor) {
    ADD_FAILURE() << checkpoint.path() << " has no tensor " << name;
    return {};
  }
  size_t count = 1;
  for (int64_t dim : tensor->shape)
    count *= static_cast<size_t>(dim);
  std::vector<float> values(count);
  EXPECT_TRUE(
      dequantizeRow(tensor->storage, tensor->data, count, values.data()));
  return values;
}

/// Each value within `relative` of its own size, or within `ofBlock` times the
/// largest one of its 32-element block.
static void expectNear(const std::vector<float> &got,
                       const std::vector<float> &expected, float relative,
                       float ofBlock) {
  ASSERT_EQ(got.size(), expected.size());
  ASSERT_FALSE(got.empty());
  for (size_t i = 0; i < got.size(); ++i) {
    float largest = 0;
    for (size_t j = i / 32 * 32; j < std::min(i / 32 * 32 + 32, got.size());
         ++j)
      largest = std::max(largest, std::fabs(expected[j]));
    float bound = relative * std::fabs(expected[i]) + ofBlock * largest;
    ASSERT_LE(std::fabs(got[i] - expected[i]), bound)
        << "at " << i << ": " << got[i] << " for " << expected[i];
  }
}

TEST(Golden, Gpt2Folder) {
  Checkpoint checkpoint = open("gpt2-hf");
  EXPECT_EQ(checkpoint.kind(), Kind::HfFolder);
  json::Reader config = checkpoint.configReader();
  EXPECT_EQ(*config.string("model_type"), "gpt2");
  EXPECT_EQ(*config.integer("n_embd"), 64);
  EXPECT_EQ(*config.real("layer_norm_epsilon"), 1e-5);
  EXPECT_EQ(*config.integerOr("n_inner", 256), 256);
  const TensorInfo *weight = checkpoint.find("h.0.attn.c_attn.weight");
  ASSERT_TRUE(weight);
  EXPECT_EQ(weight->shape, (std::vector<int64_t>{64, 192}));
  EXPECT_EQ(weight->storage, Storage::F32);
}

TEST(Golden, Gpt2RoundedCopies) {
  Checkpoint f32 = open("gpt2-hf"), bf16 = open("gpt2-hf-bf16"),
             f16 = open("gpt2-hf-f16-sharded"), same = open("gpt2-hf-prefixed");
  EXPECT_EQ(f16.tensors().size(), 28u);
  for (std::string name : {"wte.weight", "h.0.attn.c_attn.weight",
                           "h.1.mlp.c_proj.bias", "ln_f.weight"}) {
    std::vector<float> expected = valuesOf(f32, name);
    EXPECT_EQ(valuesOf(same, "transformer." + name), expected);
    expectNear(valuesOf(bf16, name), expected, 0x1p-8f, 0);
    // f16 is denser than bf16, but has subnormals.
    expectNear(valuesOf(f16, "transformer." + name), expected, 0x1p-11f,
               0x1p-14f);
  }
}

TEST(Golden, LlamaFolders) {
  Checkpoint hf = open("llama-hf"), sharded = open("llama-hf-bf16-sharded"),
             scaled = open("llama-hf-llama3-rope");
  EXPECT_TRUE(hf.find("lm_head.weight"));
  EXPECT_FALSE(scaled.find("lm_head.weight"));
  EXPECT_FALSE(hf.configReader().has("rope_scaling")); // null
  auto scaling = scaled.configReader().child("rope_scaling");
  ASSERT_TRUE(scaling);
  EXPECT_EQ(*scaling->real("factor"), 8.0);
  EXPECT_EQ(sharded.find("model.embed_tokens.weight")->storage, Storage::BF16);
  EXPECT_EQ(sharded.find("lm_head.weight")->shape,
            (std::vector<int64_t>{131, 48}));
}

TEST(Golden, LlamaGguf) {
  Checkpoint hf = open("llama-hf"), f32 = open("llama-gguf-f32/model.gguf");
  const gguf::Metadata &metadata = f32.metadata();
  EXPECT_EQ(*metadata.string("general.architecture"), "llama");
  EXPECT_EQ(*metadata.integer("llama.block_count"), 2);
  EXPECT_EQ(*metadata.integer("llama.attention.head_count_kv"), 2);
  EXPECT_EQ(*metadata.real("llama.attention.layer_norm_rms_epsilon"), 1e-5f);
  EXPECT_EQ((*metadata.strings("tokenizer.ggml.tokens"))->count, 275u);
  const TensorInfo *gate = f32.find("blk.0.ffn_gate.weight");
  ASSERT_TRUE(gate);
  EXPECT_EQ(gate->shape, (std::vector<int64_t>{96, 64}));
  EXPECT_EQ(valuesOf(f32, "blk.0.ffn_gate.weight"),
            valuesOf(hf, "model.layers.0.mlp.gate_proj.weight"));
  EXPECT_EQ(valuesOf(f32, "token_embd.weight"),
            valuesOf(hf, "model.embed_tokens.weight"));
}

TEST(Golden, LlamaGgufRoundedCopies) {
  Checkpoint f32 = open("llama-gguf-f32/model.gguf");
  // Half a step of the grid: 1/254 of the block's largest value for q8_0, 1/8
  // at the clipped end of q4_0 (its grid is -8..7), 1/15 of the block's range
  // (at most twice its largest) for q4_1; and the rounding of d and m to f16.
  struct {
    std::string name;
    Storage storage;
    float relative, ofBlock;
  } copies[] = {{"f16", Storage::F16, 0x1p-11f, 0x1p-14f},
                {"bf16", Storage::BF16, 0x1p-8f, 0},
                {"q8-0", Storage::Q8_0, 0, 0.5f / 127 + 0x1p-10f},
                {"q4-0", Storage::Q4_0, 0, 1.0f / 8 + 0x1p-10f},
                {"q4-1", Storage::Q4_1, 0, 1.0f / 15 + 0x1p-9f}};
  for (const auto &copy : copies) {
    SCOPED_TRACE(copy.name);
    Checkpoint rounded = open("llama-gguf-" + copy.name + "/model.gguf");
    for (std::string name : {"blk.0.attn_q.weight", "blk.1.ffn_up.weight"}) {
      ASSERT_TRUE(rounded.find(name));
      EXPECT_EQ(rounded.find(name)->storage, copy.storage);
      expectNear(valuesOf(rounded, name), valuesOf(f32, name), copy.relative,
                 copy.ofBlock);
    }
  }
}

TEST(Golden, GgufAlignment64) {
  Checkpoint checkpoint = open("llama-gguf-q4-1/model.gguf");
  EXPECT_EQ(*checkpoint.metadata().integer("general.alignment"), 64);
  for (const TensorInfo &tensor : checkpoint.tensors())
    EXPECT_EQ(tensor.offset % 64, 0u) << tensor.name;
}

// The same weights in groups of 16 or 32 with scales of their own: the root mean
// square of the difference is some 8 % (4 bits) and 4 % (5 bits) of the weights'.
TEST(Golden, LlamaGgufKQuants) {
  Checkpoint six = open("llama-gguf-q6-k/model.gguf");
  struct {
    std::string name;
    Storage storage;
    double apart;
  } copies[] = {{"q4-k", Storage::Q4_K, 0.09}, {"q5-k", Storage::Q5_K, 0.05}};
  for (const auto &copy : copies) {
    Checkpoint rounded = open("llama-gguf-" + copy.name + "/model.gguf");
    for (std::string name : {"token_embd.weight", "blk.0.ffn_down.weight"}) {
      SCOPED_TRACE(copy.name + " " + name);
      EXPECT_EQ(rounded.find(name)->storage, copy.storage);
      EXPECT_EQ(six.find(name)->storage, Storage::Q6_K);
      std::vector<float> got = valuesOf(rounded, name),
                         expected = valuesOf(six, name);
      ASSERT_EQ(got.size(), expected.size());
      double difference = 0, size = 0;
      for (size_t i = 0; i < got.size(); ++i) {
        difference += std::pow(got[i] - expected[i], 2.0);
        size += std::pow(expected[i], 2.0);
      }
      EXPECT_LE(std::sqrt(difference / size), copy.apart);
    }
  }
}

TEST(Golden, NanoGptCheckpoints) {
  Checkpoint plain = open("gpt2-nanogpt-bias/ckpt.pt"),
             compiled = open("gpt2-nanogpt-compiled/ckpt.pt"),
             noBias = open("gpt2-nanogpt-nobias/ckpt.pt");
  EXPECT_EQ(plain.kind(), Kind::TorchZip);
  EXPECT_EQ(plain.tensors().size(), 29u);
  EXPECT_EQ(compiled.tensors().size(), 29u);
  EXPECT_EQ(noBias.tensors().size(), 16u);
  for (const TensorInfo &tensor : plain.tensors())
    EXPECT_EQ(valuesOf(compiled, tensor.name), valuesOf(plain, tensor.name));
  EXPECT_EQ(plain.find("lm_head.weight")->data,
            plain.find("transformer.wte.weight")->data);
  EXPECT_EQ(plain.find("transformer.h.1.attn.c_attn.weight")->shape,
            (std::vector<int64_t>{72, 24}));
  for (const TensorInfo &tensor : plain.tensors())
    EXPECT_EQ(tensor.offset % 64, 0u) << tensor.name;
  EXPECT_EQ(*noBias.configReader().child("model_args")->boolean("bias"), false);
}

TEST(Golden, LlmcFiles) {
  Checkpoint f32 = open("gpt2-llmc-f32/model.bin"),
             bf16 = open("gpt2-llmc-bf16/model.bin");
  EXPECT_EQ(f32.kind(), Kind::LlmcBin);
  EXPECT_EQ(f32.tensors().size(), 28u);
  const TensorInfo *tokens = f32.find("wte.weight");
  EXPECT_EQ(tokens->shape, (std::vector<int64_t>{190, 24}));
  // 66 rows of padding lie between the two tables.
  EXPECT_EQ(f32.find("wpe.weight")->offset, tokens->offset + 256 * 24 * 4);
  EXPECT_EQ(*f32.configReader().integer("padded_vocab_size"), 256);
  EXPECT_EQ(bf16.find("h.1.mlp.c_proj.weight")->storage, Storage::BF16);
  for (const TensorInfo &tensor : f32.tensors())
    expectNear(valuesOf(bf16, tensor.name), valuesOf(f32, tensor.name), 0x1p-8f,
               0);
}
