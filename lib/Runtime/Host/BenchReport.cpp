//===- BenchReport.cpp - What gptc-bench prints ---------------------------===//

#include "Bench.h"
#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

using namespace gptc::host;
using Json = nlohmann::ordered_json;

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

/// 1e9 of it a second.
static double giga(double amount, double seconds) {
  return seconds > 0 ? amount / seconds * 1e-9 : 0.0;
}

static KernelWork total(const KernelTime &kernel) {
  KernelWork sum = kernel.prefill;
  return sum += kernel.decode;
}

static double shareOfLimit(const KernelWork &work) {
  return work.seconds > 0 ? work.limitSeconds / work.seconds : 0.0;
}

static Json workJson(const KernelWork &work, bool probed) {
  Json out = {{"calls", work.calls},
              {"s", work.seconds},
              {"flops", work.flops},
              {"bytes", work.bytes},
              {"gflops", giga(work.flops, work.seconds)},
              {"gbytes", giga(work.bytes, work.seconds)}};
  if (probed) {
    out["limit_s"] = work.limitSeconds;
    out["of_limit"] = shareOfLimit(work);
  }
  return out;
}

std::string gptc::host::benchJson(const BenchRequest &request,
                                  const Package &package,
                                  const BenchResult &result) {
  const gptc_info &info = package.info();
  int64_t prefillTokens = request.prefill * request.batch;
  int64_t decodeTokens = request.decode * request.batch;
  Json out = {
      {"name", info.name},
      {"target", info.target},
      {"precision", info.precision},
      {"weights", weightsFormat(package.manifest())},
      {"threads", request.threads},
      {"batch", request.batch},
      {"prefill_tokens", prefillTokens},
      {"prefill_s", result.prefillSeconds},
      {"prefill_tokens_per_s", double(prefillTokens) / result.prefillSeconds},
      {"decode_tokens", decodeTokens},
      {"decode_s", result.decodeSeconds},
      {"decode_tokens_per_s", double(decodeTokens) / result.decodeSeconds},
      {"weights_bytes", info.weights_bytes},
      {"kv_bytes", result.kvBytes},
      {"workspace_bytes", result.workspaceBytes}};
  if (!result.device.empty())
    out["device"] = result.device;
  if (const auto &limits = result.limits)
    out["limits"] = {{"f32_gflops", limits->f32 * 1e-9},
                     {"f32_unit", limits->f32Unit},
                     {"bf16_gflops", limits->bf16 * 1e-9},
                     {"bf16_unit", limits->bf16Unit},
                     {"int8_gops", limits->int8 * 1e-9},
                     {"int8_unit", limits->int8Unit},
                     {"read_gbytes", limits->readBytes * 1e-9},
                     {"read_size_bytes", limits->readSize}};
  Json kernels = Json::array();
  bool probed = result.limits.has_value();
  for (const KernelTime &kernel : result.kernels) {
    Json entry = {{"name", kernel.name}};
    entry.update(workJson(total(kernel), probed));
    entry["prefill"] = workJson(kernel.prefill, probed);
    entry["decode"] = workJson(kernel.decode, probed);
    kernels.push_back(std::move(entry));
  }
  out["kernels"] = std::move(kernels);
  return out.dump(2) + "\n";
}

static std::string count(int64_t n, std::string_view what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

static std::string limitsText(const MachineLimits &limits) {
  if (limits.f32 <= 0)
    return "limits: not measured on this CPU\n";
  std::string text = fmt::format("limits  {:.1f} GFLOP/s f32 ({})",
                                 limits.f32 * 1e-9, limits.f32Unit);
  if (limits.bf16 > 0)
    text += fmt::format(", {:.1f} GFLOP/s bf16 ({})", limits.bf16 * 1e-9,
                        limits.bf16Unit);
  return text + fmt::format(", {:.1f} Gop/s int8 ({}), {:.1f} GB/s read from "
                            "{:.0f} MB\n",
                            limits.int8 * 1e-9, limits.int8Unit,
                            limits.readBytes * 1e-9,
                            double(limits.readSize) * 1e-6);
}

static std::string lineText(std::string_view name, const KernelWork &work,
                            bool probed) {
  // What the manifest does not know is not measured as 0.
  auto cell = [](double value) {
    return value > 0 ? fmt::format("{:.1f}", value) : std::string("-");
  };
  std::string text =
      fmt::format("{:<56} {:>6} {:>9.4f} {:>8} {:>7}", name, work.calls,
                  work.seconds, cell(giga(work.flops, work.seconds)),
                  cell(giga(work.bytes, work.seconds)));
  if (probed)
    text += work.limitSeconds > 0
                ? fmt::format(" {:>7.0f}%", shareOfLimit(work) * 100)
                : fmt::format(" {:>8}", "-");
  return text + "\n";
}

/// The kernels of one phase, longest first, and all of them.
static std::string phaseText(std::string_view name, const BenchResult &result,
                             KernelWork KernelTime::*phase) {
  bool probed = result.limits.has_value();
  std::string text =
      fmt::format("\n{:<56} {:>6} {:>9} {:>8} {:>7}{}\n", name, "calls", "s",
                  "GFLOP/s", "GB/s", probed ? " of limit" : "");
  std::vector<const KernelTime *> kernels;
  KernelWork all;
  for (const KernelTime &kernel : result.kernels)
    if ((kernel.*phase).calls) {
      kernels.push_back(&kernel);
      all += kernel.*phase;
    }
  std::ranges::sort(kernels, std::greater(),
                    [&](const KernelTime *k) { return (k->*phase).seconds; });
  for (const KernelTime *kernel : kernels)
    text += lineText(kernel->name, kernel->*phase, probed);
  return text + lineText("all", all, probed);
}

std::string gptc::host::benchText(const BenchRequest &request,
                                  const Package &package,
                                  const BenchResult &result) {
  const gptc_info &info = package.info();
  int64_t prefillTokens = request.prefill * request.batch;
  std::string text = fmt::format(
      "{} for {}, {} arithmetic, {} weights, {}, {}\n"
      "prefill {:>8.1f} tokens/s  ({} tokens in {:.4f} s)\n"
      "decode  {:>8.1f} tokens/s\n"
      "weights {:.1f} MB, KV cache {:.1f} MB, workspace {:.1f} MB\n",
      info.name, info.target, info.precision, weightsFormat(package.manifest()),
      result.device.empty() ? count(request.threads, "thread") : result.device,
      count(request.batch, "sequence"),
      double(prefillTokens) / result.prefillSeconds, prefillTokens,
      result.prefillSeconds,
      double(request.decode * request.batch) / result.decodeSeconds,
      double(info.weights_bytes) * 1e-6, double(result.kvBytes) * 1e-6,
      double(result.workspaceBytes) * 1e-6);
  if (result.limits)
    text += limitsText(*result.limits);
  return text +
         phaseText("kernels of the prefill", result, &KernelTime::prefill) +
         phaseText("kernels of the decode", result, &KernelTime::decode);
}
