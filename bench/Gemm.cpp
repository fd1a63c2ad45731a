//===- Gemm.cpp - GEMMs of every storage format ---------------------------===//
//
// x [rows, 768] times a weight [3072, 768]: GPT-2's MLP. One row reads the
// weight from whatever cache holds it, up to 9.4 MB of f32; gptc-bench reads
// whole models from memory.
//
//===----------------------------------------------------------------------===//

#include "Compiled.h"
#include <fmt/format.h>

using namespace gptc::bench;

static constexpr int64_t K = 768, N = 3072;
static constexpr const char *storages[] = {"f32",  "bf16", "f16",
                                           "q8_0", "q4_0", "q4_1"};

/// A function for each storage format.
static std::string model() {
  std::string weights, functions;
  std::string x = fmt::format("tensor<?x{}xf32>", K),
              y = fmt::format("tensor<?x{}xf32>", N),
              w = fmt::format("tensor<{}x{}xf32>", N, K);
  for (const char *storage : storages) {
    weights += fmt::format(
        "  ml_program.global private @w_{0}(#ml_program.extern) : {1} "
        "{{gpt.stored = #gpt.stored<\"\", \"w_{0}\", {0}>}}\n",
        storage, w);
    functions += fmt::format(
        "  func.func @{0}(%x: {1} {{gpt.arg = \"x\"}}) -> ({2} {{gpt.result = "
        "\"y\"}}) {{\n    %w = ml_program.global_load_const @w_{0} : {3}\n"
        "    %y = gpt.linear %x, %w : {1}, {3} -> {2}\n    return %y : {2}\n"
        "  }}\n",
        storage, x, y, w);
  }
  return "module attributes {gpt.name = \"gemms\"} {\n" + weights + functions +
         "}\n";
}

static void measure(benchmark::State &state, const std::string &precision,
                    const std::string &storage) {
  Compiled *compiled =
      compiledOnce(state, model(), {"--precision=" + precision});
  if (!compiled)
    return;
  int64_t rows = state.range(0), threads = state.range(1);
  std::vector<Input> inputs = {{"x", {rows, K}, randomNumbers(rows * K)}};
  compiled->run(threads, storage, inputs, "y");
  for (auto _ : state)
    state.SetIterationTime(compiled->run(threads, storage, inputs, "y"));
  setRates(state, 2.0 * double(rows) * K * N,
           double(compiled->packedBytes("w_" + storage) + 4 * rows * (K + N)));
}

void gptc::bench::registerGemm() {
  for (const char *precision : {"f32", "bf16", "int8"})
    for (const char *storage : storages)
      benchmark::RegisterBenchmark(
          fmt::format("gemm/{}/{}", precision, storage).c_str(),
          [=](benchmark::State &state) { measure(state, precision, storage); })
          ->ArgNames({"rows", "threads"})
          ->ArgsProduct({{1, 8, 512}, threadCounts()})
          ->UseManualTime()
          ->Unit(benchmark::kMicrosecond);
}
