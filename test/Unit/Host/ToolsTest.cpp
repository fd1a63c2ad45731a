//===- ToolsTest.cpp - gptc-run and gptc-bench over the toy package -------===//

#include "gptc/Runtime/Host/Tools.h"
#include "ToyModel.h"
#include "gptc/Runtime/Host/Files.h"
#include "gptc/Runtime/Host/Npy.h"
#include <cstring>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace fs = std::filesystem;
using namespace gptc::host;

namespace {

class Tools : public ::testing::Test {
protected:
  Tools() {
    dir =
        fs::temp_directory_path() / ("gptc tools " + std::to_string(getpid()));
    fs::create_directories(dir);
    fs::copy_file(GPTC_TOY_LIBRARY, dir / "libtoy.so",
                  fs::copy_options::overwrite_existing);
    std::vector<char> weights = toy::weightsFile();
    std::ofstream(dir / "toy.weights", std::ios::binary)
        .write(weights.data(), std::streamsize(weights.size()));
    manifest(R"({"schema": 1, "name": "toy", "entries": [
      {"name": "gather", "inputs": [{"name": "x"}, {"name": "index"}],
       "outputs": [{"name": "y"}]}],
      "weights": [{"packed_dtype": "f32", "bytes": 1024}],
      "kernels": [{"name": "head", "flops_per_row": 320,
        "weight_bytes_per_call": 1024, "arguments": [{"shape": ["d0", 8]}]}]})");
  }
  ~Tools() override { fs::remove_all(dir); }

  void manifest(const char *text) {
    std::ofstream(dir / "manifest.json") << text;
  }
  std::string path(const char *name) { return (dir / name).string(); }

  int call(int (*tool)(int, const char *const *),
           std::vector<std::string> line) {
    std::vector<const char *> argv = {"tool"};
    for (const std::string &argument : line)
      argv.push_back(argument.c_str());
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    int status = tool(int(argv.size()), argv.data());
    std::fflush(stdout);
    out = testing::internal::GetCapturedStdout();
    err = testing::internal::GetCapturedStderr();
    return status;
  }
  int run(std::vector<std::string> line) {
    line.insert(line.begin(), dir.string());
    return call(runTool, line);
  }

  fs::path dir;
  std::string out, err;
};

int32_t greedy(const std::vector<int32_t> &tokens) {
  std::vector<float> logits = toy::reference(tokens);
  return int32_t(std::max_element(logits.begin(), logits.end()) -
                 logits.begin());
}

TEST_F(Tools, ContinuesTokens) {
  std::vector<int32_t> ids = {1, 2, 3};
  std::string want;
  for (int i = 0; i < 5; ++i) {
    ids.push_back(greedy(ids));
    want += (i ? "," : "") + std::to_string(ids.back());
  }
  ASSERT_EQ(run({"--tokens", "1,2,3", "-n", "5", "--print-tokens"}), 0) << err;
  EXPECT_EQ(out, want + "\n");
  ASSERT_EQ(run({"--tokens", "1,2,3", "-n", "100", "--print-tokens",
                 "--threads", "2", "--split", "2"}),
            0);
  EXPECT_EQ(out.substr(0, want.size()), want);
  // 21 tokens fill the context; the token after them needs no room.
  EXPECT_EQ(std::count(out.begin(), out.end(), ','), 21);
  EXPECT_NE(err.find("the context of 24 tokens is full"), std::string::npos);
}

TEST_F(Tools, PrintsThePromptsIds) {
  EXPECT_EQ(run({"--tokens", "1,20,3", "--tokenize"}), 0) << err;
  EXPECT_EQ(out, "1,20,3\n");
  EXPECT_EQ(err, "");
}

TEST_F(Tools, WritesLogitsOfEveryPosition) {
  for (std::string split : {"3", "1,1", "2"}) {
    ASSERT_EQ(run({"--tokens", "4,9,19", "-n", "0", "--logits", path("l.npy"),
                   "--split", split}),
              0)
        << err;
    EXPECT_EQ(out, "");
    std::string error;
    auto logits = parseNpy(*readFile(path("l.npy"), error), error);
    ASSERT_TRUE(logits) << error;
    EXPECT_EQ(logits->shape, (std::vector<int64_t>{3, toy::V}));
    std::vector<float> values(3 * toy::V), want;
    std::memcpy(values.data(), logits->data.data(), logits->data.size());
    for (std::vector<int32_t> ids :
         {std::vector{4}, std::vector{4, 9}, std::vector{4, 9, 19}}) {
      std::vector<float> row = toy::reference(ids);
      want.insert(want.end(), row.begin(), row.end());
    }
    EXPECT_EQ(values, want);
  }
}

TEST_F(Tools, RunsAnEntry) {
  Array x, index;
  x.name = "x";
  x.shape = {1, toy::D};
  x.data.resize(toy::D * 4);
  index.name = "index";
  index.dtype = GPTC_I32;
  index.shape = {1};
  index.data = {4, 0, 0, 0};
  Array other = x;
  other.name = "y"; // an output: it may be there
  Array all[] = {x, other, index};
  std::vector<uint8_t> bytes = serializeNpz(all);
  std::ofstream(dir / "x.npz", std::ios::binary)
      .write(reinterpret_cast<char *>(bytes.data()),
             std::streamsize(bytes.size()));
  std::vector<std::string> line = {"--entry",     "gather",    "--inputs",
                                   path("x.npz"), "--outputs", path("y.npz")};
  ASSERT_EQ(run(line), 0) << err;
  std::string error;
  auto outputs = parseNpz(*readFile(path("y.npz"), error), error);
  ASSERT_TRUE(outputs) << error;
  ASSERT_EQ(outputs->size(), 1u);
  EXPECT_EQ((*outputs)[0].name, "y");
  float y[toy::D];
  std::memcpy(y, (*outputs)[0].data.data(), sizeof(y));
  for (int64_t d = 0; d < toy::D; ++d)
    EXPECT_EQ(y[d], toy::tableAt(4, d));
  line[1] = "scatter";
  EXPECT_EQ(run(line), 1);
  EXPECT_NE(err.find("no entry 'scatter'"), std::string::npos) << err;
  line[1] = "gathr";
  EXPECT_EQ(run(line), 1);
  EXPECT_NE(err.find("did you mean 'gather'?"), std::string::npos) << err;
}

TEST_F(Tools, RefusalsLeaveNoOutput) {
  const struct {
    std::vector<std::string> line;
    int status;
    const char *says;
  } cases[] = {
      {{"--tokens", "1,20", "-n", "0"},
       1,
       "error: option '--tokens': token 1: expected an id from 0 to 19, the "
       "vocabulary of "},
      {{"--tokens", "1,20", "-n", "0"}, 1, ", got 20; give ids of the model's"},
      {{"--tokens", "-1,1", "-n", "0"}, 1, ", got -1; give ids of the model's"},
      {{"--tokens", "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0"},
       1,
       "tokenizer.bin"},
      {{"--tokens", "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0",
        "--print-tokens"},
       1,
       "the prompt has 25 tokens: expected at most 24"},
      {{"--tokens", "1", "--split", "2", "-n", "0"}, 1, "at most 1 tokens"},
      {{"--prompt", "x"}, 1, "tokenizer.bin"},
      {{"--tokens", "1,2", "--prompt", "x"}, 2, "exactly one of"},
      {{}, 2, "exactly one of"},
      {{"--tokens", "1", "-n", "x"}, 2, "option '-n'"},
      {{"--tokens", "1", "-n", "1", "--print-token"}, 2, "--print-tokens'?"},
      {{"--entry", "gather"}, 2, "--inputs and --outputs"},
      {{"--entry", "gather", "--tokenize"}, 2, "--tokenize is for --prompt"},
  };
  for (const auto &each : cases) {
    std::vector<std::string> line = each.line;
    line.insert(line.end(), {"--logits", path("none.npy")});
    EXPECT_EQ(run(line), each.status) << err;
    EXPECT_NE(err.find(each.says), std::string::npos) << err;
    EXPECT_EQ(std::count(err.begin(), err.end(), '\n'), 1) << err;
    EXPECT_EQ(out, "");
  }
  for (const auto &entry : fs::directory_iterator(dir))
    EXPECT_EQ(entry.path().string().find("none"), std::string::npos);
}

TEST_F(Tools, RefusesDamagedPackages) {
  std::vector<std::string> line = {"--tokens", "1", "-n", "0"};
  fs::resize_file(dir / "toy.weights", 100);
  EXPECT_EQ(run(line), 1);
  EXPECT_NE(err.find("toy.weights: truncated"), std::string::npos) << err;
  fs::remove(dir / "toy.weights");
  EXPECT_EQ(run(line), 1);
  for (const char *text : {"", "[]", "{\"name\": \"../toy\"}", "{\"name\": 1}",
                           "{\"name\": \"other\"}"}) {
    manifest(text);
    EXPECT_EQ(run(line), 1) << text;
  }
  fs::remove(dir / "manifest.json");
  EXPECT_EQ(run(line), 1);
  EXPECT_NE(err.find("expected the folder of a compiled package"),
            std::string::npos);
}

TEST_F(Tools, BenchmarksAsJson) {
  ASSERT_EQ(call(benchTool, {dir.string(), "--json", "--runs", "2", "--threads",
                             "1", "--batch", "2"}),
            0)
      << err;
  auto json = nlohmann::json::parse(out);
  for (const char *key :
       {"name", "target", "precision", "weights", "threads", "prefill_tokens",
        "prefill_s", "prefill_tokens_per_s", "decode_tokens_per_s",
        "weights_bytes", "kv_bytes", "workspace_bytes", "kernels"})
    EXPECT_TRUE(json.contains(key)) << key;
  EXPECT_EQ(json["prefill_tokens"], 24);
  EXPECT_EQ(json["kv_bytes"], 2 * 6 * 2 * 2 * toy::D * toy::page * 4);
  EXPECT_EQ(json["kernels"].size(), 3u);
  for (const auto &kernel : json["kernels"])
    if (kernel["name"] == "head") { // a row for each of two sequences
      EXPECT_EQ(kernel["prefill"]["calls"], 2);
      EXPECT_EQ(kernel["prefill"]["flops"], 2 * 320);
      EXPECT_EQ(kernel["prefill"]["bytes"], 2 * (1024 + 8 * 4));
    }
  EXPECT_EQ(call(benchTool, {dir.string(), "--prefill", "25"}), 1);
  EXPECT_EQ(call(benchTool, {dir.string(), "--runs", "0"}), 2);
  EXPECT_EQ(call(benchTool, {"--help"}), 0);
}

} // namespace
