//===- Main.cpp - gptc-microbench -----------------------------------------===//
//
// Takes Google Benchmark's options (--help): --benchmark_filter=gemm/f32/.*,
// --benchmark_repetitions=5, --benchmark_format=json.
//
//===----------------------------------------------------------------------===//

#include "Compiled.h"

int main(int argc, char **argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv))
    return 2;
  gptc::bench::registerGemm();
  gptc::bench::registerAttention();
  gptc::bench::registerNorm();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
