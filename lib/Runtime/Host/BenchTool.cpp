//===- BenchTool.cpp - gptc-bench: the command line -----------------------===//

#include "Bench.h"
#include "gptc/Runtime/Host/Options.h"
#include "gptc/Runtime/Host/Tools.h"
#include <algorithm>
#include <fmt/format.h>
#include <sched.h>

using namespace gptc::host;

static constexpr std::string_view usage =
    "usage: gptc-bench DIR [options]\n"
    "Measures prefill and decode of the compiled package in DIR, and each "
    "kernel's time.\n"
    "FLOPs and bytes are counted from the manifest: weights as they are "
    "packed, "
    "activations\nand the KV cache, each once a call.\n";

static constexpr OptionSpec specs[] = {
    {"--prefill", "N", "prompt tokens of a sequence (512, or what fits)"},
    {"--decode", "N", "tokens generated after it (128, or what fits)"},
    {"--batch", "B", "sequences (1)"},
    {"--threads", "N", "of the CPU (0: one for each CPU)"},
    {"--runs", "R", "medians are over so many runs (5)"},
    {"--probe", "",
     "measure the CPU's limits, too, and compare kernels with them"},
    {"--json", "", "machine-readable; gflops and gbytes are per second"},
    {"--help", "", "print this"},
    {"--version", "", "print the version"},
};

static int64_t cpuCount() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
}

static bool readRequest(const Options &options, BenchRequest &request,
                        std::string &error) {
  if (options.positional.size() != 1) {
    error = fmt::format("expected one package folder, got {} arguments",
                        options.positional.size());
    return false;
  }
  request.folder = options.positional[0];
  request.json = options.has("--json");
  request.probe = options.has("--probe");
  request.threads = cpuCount();
  constexpr int64_t most = 1 << 20;
  if (!options.integer("--prefill", 1, most, request.prefill, error) ||
      !options.integer("--decode", 1, most, request.decode, error) ||
      !options.integer("--batch", 1, 4096, request.batch, error) ||
      !options.integer("--threads", 0, 1024, request.threads, error) ||
      !options.integer("--runs", 1, 1000, request.runs, error))
    return false;
  if (request.threads == 0)
    request.threads = cpuCount();
  return true;
}

/// Defaults shrink to the context; numbers that were asked for do not.
static bool fitContext(const Options &options, const gptc_info &info,
                       BenchRequest &request, std::string &error) {
  if (info.context < 2) {
    error = fmt::format("{}: expected a package with a stepping entry and a "
                        "context of 2 tokens or more",
                        request.folder);
    return false;
  }
  if (!options.has("--decode"))
    request.decode = std::min(request.decode, info.context / 2);
  if (!options.has("--prefill"))
    request.prefill = std::max<int64_t>(
        1, std::min(request.prefill, info.context - request.decode));
  if (request.prefill + request.decode > info.context) {
    error = fmt::format("--prefill {} and --decode {}: expected at most {} "
                        "tokens together, the context length",
                        request.prefill, request.decode, info.context);
    return false;
  }
  return true;
}

int gptc::host::benchTool(int argc, const char *const *argv) {
  constexpr std::string_view tool = "gptc-bench";
  int status;
  auto options = commandLine(tool, usage, specs, argc, argv, status);
  if (!options)
    return status;
  std::string error;
  BenchRequest request;
  if (!readRequest(*options, request, error))
    return report(tool, error, 2);
  auto package = Package::load(request.folder, error);
  if (!package || !fitContext(*options, package->info(), request, error))
    return report(tool, error, 1);
  auto result = bench(request, *package, error);
  if (!result)
    return report(tool, error, 1);
  if (!put(request.json ? benchJson(request, *package, *result)
                        : benchText(request, *package, *result),
           error))
    return report(tool, error, 1);
  return 0;
}
