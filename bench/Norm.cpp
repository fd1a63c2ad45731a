//===- Norm.cpp - Norms as kernels of their own ---------------------------===//

#include "Compiled.h"
#include <fmt/format.h>

using namespace gptc::bench;

static constexpr int64_t C = 768;

static std::string model() {
  std::string x = fmt::format("tensor<?x{}xf32>", C),
              g = fmt::format("tensor<{}xf32>", C);
  return fmt::format(
      "module attributes {{gpt.name = \"norms\"}} {{\n"
      "  ml_program.global private @g(#ml_program.extern) : {1}\n"
      "  ml_program.global private @b(#ml_program.extern) : {1}\n"
      "  func.func @layer(%x: {0} {{gpt.arg = \"x\"}}) -> ({0} {{gpt.result = "
      "\"y\"}}) {{\n"
      "    %g = ml_program.global_load_const @g : {1}\n"
      "    %b = ml_program.global_load_const @b : {1}\n"
      "    %y = gpt.layer_norm %x, %g, %b eps 1.0e-5 : {0}, {1}, {1}\n"
      "    return %y : {0}\n  }}\n"
      "  func.func @rms(%x: {0} {{gpt.arg = \"x\"}}) -> ({0} {{gpt.result = "
      "\"y\"}}) {{\n"
      "    %g = ml_program.global_load_const @g : {1}\n"
      "    %y = gpt.rms_norm %x, %g eps 1.0e-5 : {0}, {1}\n"
      "    return %y : {0}\n  }}\n}}\n",
      x, g);
}

static void measure(benchmark::State &state, const std::string &entry) {
  Compiled *compiled = compiledOnce(state, model());
  if (!compiled)
    return;
  int64_t rows = state.range(0), threads = state.range(1);
  std::vector<Input> inputs = {{"x", {rows, C}, randomNumbers(rows * C)}};
  compiled->run(threads, entry, inputs, "y");
  for (auto _ : state)
    state.SetIterationTime(compiled->run(threads, entry, inputs, "y"));
  setRates(state, 0, 2.0 * 4 * C * double(rows));
}

void gptc::bench::registerNorm() {
  for (const char *entry : {"layer", "rms"})
    benchmark::RegisterBenchmark(
        fmt::format("norm/{}", entry).c_str(),
        [=](benchmark::State &state) { measure(state, entry); })
        ->ArgNames({"rows", "threads"})
        ->ArgsProduct({{1, 512}, threadCounts()})
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
}
