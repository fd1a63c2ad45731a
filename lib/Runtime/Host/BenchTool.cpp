//===- BenchTool.cpp - gptc-bench: the command line and its report --------===//

#include "Bench.h"
#include "gptc/Runtime/Host/Options.h"
#include "gptc/Runtime/Host/Tools.h"
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <sched.h>

using namespace gptc::host;

static constexpr std::string_view usage =
    "usage: gptc-bench DIR [options]\n"
    "Measures prefill and decode of the compiled package in DIR.\n";

static constexpr OptionSpec specs[] = {
    {"--prefill", "N", "prompt tokens of a sequence (512, or what fits)"},
    {"--decode", "N", "tokens generated after it (128, or what fits)"},
    {"--batch", "B", "sequences (1)"},
    {"--threads", "N", "of the CPU (0: one for each CPU)"},
    {"--runs", "R", "medians are over so many runs (5)"},
    {"--json", "", "machine-readable; gflops and gbytes are per second"},
    {"--help", "", "print this"},
    {"--version", "", "print the version"},
};

static int64_t cpuCount() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
}

/// The format in which most bytes of the weights are packed.
static std::string weightsFormat(const nlohmann::json &manifest) {
  std::map<std::string, int64_t> bytes;
  auto weights = manifest.find("weights");
  if (weights != manifest.end() && weights->is_array())
    for (const auto &weight : *weights)
      if (weight.is_object() && weight.contains("packed_dtype") &&
          weight["packed_dtype"].is_string() && weight.contains("bytes") &&
          weight["bytes"].is_number_integer())
        bytes[weight["packed_dtype"].get<std::string>()] +=
            weight["bytes"].get<int64_t>();
  auto most = std::ranges::max_element(
      bytes, {}, [](const auto &entry) { return entry.second; });
  return most == bytes.end() ? "none" : most->first;
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

static void printReport(const BenchRequest &request, const Package &package,
                        const BenchResult &result) {
  const gptc_info &info = package.info();
  int64_t prefillTokens = request.prefill * request.batch;
  double prefillRate = prefillTokens / result.prefillSeconds;
  double decodeRate = request.decode * request.batch / result.decodeSeconds;
  auto perSecond = [](double amount, double seconds) {
    return seconds > 0 ? amount / seconds * 1e-9 : 0.0;
  };
  std::string weights = weightsFormat(package.manifest());
  if (request.json) {
    nlohmann::ordered_json out = {{"name", info.name},
                                  {"target", info.target},
                                  {"precision", info.precision},
                                  {"weights", weights},
                                  {"threads", request.threads},
                                  {"batch", request.batch},
                                  {"prefill_tokens", prefillTokens},
                                  {"prefill_s", result.prefillSeconds},
                                  {"prefill_tokens_per_s", prefillRate},
                                  {"decode_tokens_per_s", decodeRate},
                                  {"weights_bytes", info.weights_bytes},
                                  {"kv_bytes", result.kvBytes},
                                  {"workspace_bytes", result.workspaceBytes},
                                  {"kernels", nlohmann::ordered_json::array()}};
    if (!result.device.empty())
      out["device"] = result.device;
    for (const KernelTime &k : result.kernels)
      out["kernels"].push_back({{"name", k.name},
                                {"calls", k.calls},
                                {"s", k.seconds},
                                {"gflops", perSecond(k.flops, k.seconds)},
                                {"gbytes", perSecond(k.bytes, k.seconds)}});
    fmt::print("{}\n", out.dump(2));
    return;
  }
  auto count = [](int64_t n, std::string_view what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
  };
  // What the manifest does not know is not measured as 0.
  auto cell = [](double value) {
    return value > 0 ? fmt::format("{:.1f}", value) : std::string("-");
  };
  fmt::print("{} for {}, {} arithmetic, {} weights, {}, {}\n"
             "prefill {:>8.1f} tokens/s  ({} tokens in {:.4f} s)\n"
             "decode  {:>8.1f} tokens/s\n"
             "weights {:.1f} MB, KV cache {:.1f} MB, workspace {:.1f} MB\n\n"
             "{:<56} {:>6} {:>9} {:>8} {:>7}\n",
             info.name, info.target, info.precision, weights,
             result.device.empty() ? count(request.threads, "thread")
                                   : result.device,
             count(request.batch, "sequence"), prefillRate, prefillTokens,
             result.prefillSeconds, decodeRate, info.weights_bytes * 1e-6,
             result.kvBytes * 1e-6, result.workspaceBytes * 1e-6, "kernel",
             "calls", "s", "GFLOP/s", "GB/s");
  for (const KernelTime &k : result.kernels)
    fmt::print("{:<56} {:>6} {:>9.4f} {:>8} {:>7}\n", k.name, k.calls,
               k.seconds, cell(perSecond(k.flops, k.seconds)),
               cell(perSecond(k.bytes, k.seconds)));
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
  printReport(request, *package, *result);
  return 0;
}
