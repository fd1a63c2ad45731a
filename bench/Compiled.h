//===- Compiled.h - A model compiled for a benchmark ----------------------===//
//
// The text goes through the compiler's library into a folder that is removed at
// the end, and the package is opened through its C interface with random
// weights. Time is that of kernels alone, as gptc_api::observe tells it.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_BENCH_COMPILED_H
#define GPTC_BENCH_COMPILED_H

#include "gptc/Runtime/Host/Package.h"
#include <benchmark/benchmark.h>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace gptc::bench {

/// A tensor of f32 or i32 with its numbers.
struct Input {
  std::string name;
  std::vector<int64_t> shape;
  std::vector<float> data;
};

/// Numbers between -1 and 1, the same in every run.
std::vector<float> randomNumbers(int64_t count);

class Compiled {
public:
  /// Throws std::runtime_error with what the compiler or the package says.
  Compiled(const std::string &text, std::vector<std::string> options);
  ~Compiled();
  Compiled(const Compiled &) = delete;
  Compiled &operator=(const Compiled &) = delete;

  /// Seconds of the kernels whose names begin with `kernel` in a run of the
  /// entry; outputs have the sizes that it says.
  double run(int64_t threads, const std::string &entry,
             const std::vector<Input> &inputs, const std::string &output,
             std::string_view kernel = "");
  /// The same of a step of `count` tokens of each of `sequences`, from
  /// `position` on.
  double step(int64_t threads, int64_t sequences, int64_t count,
              int64_t position, std::string_view kernel);

  /// Bytes of a weight as it lies in the package.
  int64_t packedBytes(const std::string &weight) const;

private:
  struct Session;
  Session &session(int64_t threads);

  std::string folder;
  std::optional<host::Package> package;
  std::optional<host::Handle<gptc_model>> model;
  std::map<int64_t, std::unique_ptr<Session>> sessions;
};

/// Compiled when it is first asked for, and kept; a failure ends the benchmark
/// with its message and returns null.
Compiled *compiledOnce(benchmark::State &state, const std::string &text,
                       const std::vector<std::string> &options = {});

/// Sets GFLOP/s and GB/s from what one iteration does.
void setRates(benchmark::State &state, double flops, double bytes);

/// One thread, and one for each CPU.
std::vector<int64_t> threadCounts();

void registerGemm();
void registerAttention();
void registerNorm();

} // namespace gptc::bench

#endif // GPTC_BENCH_COMPILED_H
