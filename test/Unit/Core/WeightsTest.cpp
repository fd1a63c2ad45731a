//===- WeightsTest.cpp - What open accepts as weights ---------------------===//

#include "ToyModel.h"
#include <cstdio>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

namespace {

const gptc_api &api = *gptc_core_api();

class WeightsFile : public ::testing::Test {
protected:
  WeightsFile() {
    char name[] = "/tmp/gptc-weights-XXXXXX";
    close(mkstemp(name));
    path = name;
  }
  ~WeightsFile() override { remove(path.c_str()); }

  gptc_status open(const std::vector<char> &bytes, bool verify) {
    FILE *file = fopen(path.c_str(), "wb");
    fwrite(bytes.data(), 1, bytes.size(), file);
    fclose(file);
    gptc_open_params params{sizeof(params), path.c_str(), nullptr, 0,
                            nullptr,        verify};
    gptc_model *model = nullptr;
    gptc_status status = api.open(&params, &model);
    EXPECT_EQ(model != nullptr, status == GPTC_OK);
    if (status != GPTC_OK) {
      EXPECT_NE(std::string(api.last_error()).find(path), std::string::npos);
    }
    api.close(model);
    return status;
  }
  std::string path;
};

TEST_F(WeightsFile, WholeDamagedAndForeign) {
  std::vector<char> good = toy::weightsFile();
  EXPECT_EQ(open(good, false), GPTC_OK) << api.last_error();
  EXPECT_EQ(open(good, true), GPTC_OK) << api.last_error();
  std::vector<char> bad = good;
  bad[100] ^= 1;
  EXPECT_EQ(open(bad, true), GPTC_BAD_WEIGHTS);
  for (size_t size : {size_t(0), size_t(10), size_t(64), good.size() - 1})
    EXPECT_EQ(open({good.begin(), good.begin() + size}, false),
              GPTC_BAD_WEIGHTS);
  bad = good;
  bad.push_back(0);
  EXPECT_EQ(open(bad, false), GPTC_BAD_WEIGHTS);
  bad = good;
  bad[0] ^= 1;
  EXPECT_EQ(open(bad, false), GPTC_BAD_WEIGHTS);
  bad = good;
  bad[8] ^= 1;
  EXPECT_EQ(open(bad, false), GPTC_BAD_WEIGHTS);
  EXPECT_NE(std::string(api.last_error()).find("another package"),
            std::string::npos);
}

TEST_F(WeightsFile, Missing) {
  gptc_open_params params{
      sizeof(params), "/nonexistent/w", nullptr, 0, nullptr, 0};
  gptc_model *model = nullptr;
  EXPECT_EQ(api.open(&params, &model), GPTC_BAD_WEIGHTS);
  EXPECT_STREQ(api.last_error(),
               "/nonexistent/w: cannot be opened: no such file");
}

TEST(HostWeights, AreCheckedByNameFormatAndShape) {
  struct Case {
    const char *says;
    void (*spoil)(toy::Weights &);
  };
  const Case cases[] = {
      {"weight 'bias' is missing among the 3",
       [](toy::Weights &w) { w.tensors[1].name = "b"; }},
      {"weight 'table': expected f32, got f16",
       [](toy::Weights &w) { w.tensors[2].dtype = GPTC_F16; }},
      {"weight 'table': expected shape [20, 8], got [8, 20]",
       [](toy::Weights &w) {
         w.tensors[2].shape[0] = 8;
         w.tensors[2].shape[1] = 20;
       }},
      {"weight 'bias': expected shape [8], got [1, 1, 8]",
       [](toy::Weights &w) {
         w.tensors[1].rank = 3;
         w.tensors[1].shape[0] = w.tensors[1].shape[1] = 1;
         w.tensors[1].shape[2] = 8;
       }},
      {"weight 'bias': expected 32 bytes of data, got 31",
       [](toy::Weights &w) { w.tensors[1].capacity_bytes = 31; }},
      {"weight 'bias': expected 32 bytes of data, got 0",
       [](toy::Weights &w) { w.tensors[1].data = nullptr; }},
  };
  for (const Case &each : cases) {
    toy::Weights weights;
    each.spoil(weights);
    gptc_open_params params{sizeof(params), nullptr, weights.tensors, 3,
                            nullptr,        0};
    gptc_model *model = nullptr;
    EXPECT_EQ(api.open(&params, &model), GPTC_INVALID_ARGUMENT);
    EXPECT_NE(std::string(api.last_error()).find(each.says), std::string::npos)
        << api.last_error();
  }
}

TEST(HostWeights, ExactlyOneSource) {
  toy::Weights weights;
  gptc_model *model = nullptr;
  gptc_open_params params{sizeof(params), nullptr, nullptr, 0, nullptr, 0};
  EXPECT_EQ(api.open(&params, &model), GPTC_INVALID_ARGUMENT);
  params.weights = weights.tensors;
  params.weights_path = "x";
  EXPECT_EQ(api.open(&params, &model), GPTC_INVALID_ARGUMENT);
  EXPECT_EQ(api.open(nullptr, &model), GPTC_INVALID_ARGUMENT);
  params.weights_path = nullptr;
  params.size = 8;
  EXPECT_EQ(api.open(&params, &model), GPTC_INVALID_ARGUMENT);
}

} // namespace
