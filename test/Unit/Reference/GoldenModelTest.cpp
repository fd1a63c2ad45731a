// Whole small models, imported from every supported checkpoint format, against
// the logits of an independent implementation (test/Golden).
#include "Evaluate.h"
#include "gptc/Import/Import.h"
#include "gptc/Runtime/Host/Npy.h"
#include <cstring>
#include <fstream>

using namespace gptc::reference;
namespace checkpoint = gptc::checkpoint;

namespace {
class GoldenModelTest : public testing::TestWithParam<const char *> {};

std::vector<double> readNpy(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(in), {}};
  std::string problem;
  auto array = gptc::host::parseNpy(bytes, problem);
  EXPECT_TRUE(array) << problem;
  if (!array)
    return {};
  std::vector<float> values(array->data.size() / sizeof(float));
  std::memcpy(values.data(), array->data.data(), array->data.size());
  return {values.begin(), values.end()};
}

/// The file that `files` names alone, or the folder.
std::string checkpointPath(const std::string &folder,
                           const checkpoint::json::Value &description) {
  const auto &files = *description.find("files")->asArray();
  return files.size() == 1 ? folder + "/" + *files[0].asString() : folder;
}
} // namespace

TEST_P(GoldenModelTest, Logits) {
  std::string folder = std::string(GPTC_GOLDEN_DIR) + "/" + GetParam();
  auto description = checkpoint::json::parseFile(folder + "/case.json");
  ASSERT_TRUE(bool(description)) << description.error().message;
  auto opened =
      checkpoint::Checkpoint::open(checkpointPath(folder, *description));
  ASSERT_TRUE(bool(opened)) << opened.error().message;
  mlir::MLIRContext context;
  auto imported = gptc::importCheckpoint(context, *opened, {});
  ASSERT_TRUE(bool(imported)) << imported.error().message;
  auto forward = imported->module->lookupSymbol<mlir::func::FuncOp>("forward");
  ASSERT_TRUE(forward);
  CheckpointWeights weights(*opened);
  Evaluator evaluator(&weights);

  for (const auto &prompt : *description->find("prompts")->asArray()) {
    std::vector<int64_t> ids;
    for (const auto &id : *prompt.find("ids")->asArray())
      ids.push_back(*id.asInt());
    int64_t count = ids.size();
    auto results = evaluator.run(forward, {makeInts({count}, std::move(ids))});
    ASSERT_TRUE(mlir::succeeded(results));
    // Double arithmetic against float64 rounded to float32 once.
    expectNear((*results)[0]->data,
               readNpy(folder + "/" + *prompt.find("logits")->asString()),
               2e-6);
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, GoldenModelTest,
                         testing::Values("gpt2-hf", "gpt2-hf-prefixed",
                                         "gpt2-hf-bf16", "gpt2-hf-f16-sharded",
                                         "llama-hf", "llama-hf-llama3-rope",
                                         "llama-hf-bf16-sharded",
                                         "llama-gguf-f32", "llama-gguf-f16",
                                         "llama-gguf-bf16", "llama-gguf-q8-0",
                                         "llama-gguf-q4-0", "llama-gguf-q4-1"),
                         [](const auto &info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });
