// gpt.flash_attention against PyTorch's attention in float64 (test/Golden).
#include "Evaluate.h"
#include "gptc/Runtime/Host/Npy.h"
#include <cstring>
#include <filesystem>
#include <fstream>

using namespace gptc::reference;

namespace {
using GoldenTest = EvaluateTest;

std::vector<uint8_t> readFile(const std::filesystem::path &path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TensorRef toTensor(const gptc::host::Array &array) {
  std::vector<double> data;
  for (size_t i = 0; i + 4 <= array.data.size(); i += 4) {
    if (array.dtype == GPTC_F32) {
      float value;
      std::memcpy(&value, &array.data[i], 4);
      data.push_back(value);
    } else {
      int32_t value;
      std::memcpy(&value, &array.data[i], 4);
      data.push_back(value);
    }
  }
  return makeTensor(array.shape, std::move(data));
}
} // namespace

TEST_F(GoldenTest, FlashAttention) {
  std::filesystem::path folder =
      std::filesystem::path(GPTC_GOLDEN_DIR) / "attention";
  int cases = 0;
  for (const auto &entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".npz")
      continue;
    SCOPED_TRACE(entry.path().filename().string());
    std::string problem;
    auto arrays = gptc::host::parseNpz(readFile(entry.path()), problem);
    ASSERT_TRUE(arrays) << problem;
    std::map<std::string, TensorRef> named;
    for (const gptc::host::Array &array : *arrays)
      named[array.name] = toTensor(array);
    TensorRef q = named.at("q"), k = named.at("k"), v = named.at("v");
    int64_t D = q->dim(2);
    auto type = [&](const TensorRef &x) {
      return "tensor<" + std::to_string(x->dim(0)) + "x?x" + std::to_string(D) +
             "xf32>";
    };
    std::string text = fmt::format(
        "func.func @f(%q: {0}, %k: {1}, %v: {1}) -> {0} {{\n"
        "%o = gpt.flash_attention %q, %k, %v {2} scale {3:.17f} groups {4} : "
        "{0}, {1}\nreturn %o : {0}\n}}",
        type(q), type(k), named.at("causal")->data[0] != 0 ? "causal" : "",
        named.at("scale")->data[0], q->dim(0) / k->dim(0));
    // The file's float64 scale and results are read as float32.
    expectNear(run(text, {q, k, v}), named.at("out")->data, 2e-6);
    ++cases;
  }
  EXPECT_EQ(cases, 12);
}
