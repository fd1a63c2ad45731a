//===- CheckTool.cpp - gptc-check: command line and report ----------------===//
//
// One line for each kernel: calls, then the error, the error in units of the
// result's rms and the bound of the call that is nearest to its bound (or
// farthest out of it). Then where that is, for every kernel that fails, or for
// the worst of all; then one line for each output.
//
//===----------------------------------------------------------------------===//

#include "EndToEnd.h"
#include "gptc/Check/Check.h"
#include "gptc/Runtime/Host/Options.h"
#include <fmt/format.h>
#include <nlohmann/json.hpp>

using namespace mlir;
using namespace gptc;
using namespace gptc::check;

static constexpr std::string_view usage =
    "usage: gptc-check MODEL.mlir [--package DIR] [--tokens 1,2,3]\n"
    "       gptc-check MODEL.mlir [--package DIR] --entry NAME --inputs "
    "X.npz\n"
    "Compares a compiled package with the reference evaluator, kernel by "
    "kernel and end to end.\n"
    "One line a kernel, of its worst call: how often it ran; max error, the "
    "largest difference\nfrom the reference in double; error/rms, that in "
    "units "
    "of the root mean square of the\nresult; bound, what max error may be: "
    "twice the error of plain f32 arithmetic on the same\noperands and 8 units "
    "in the last place; ok or FAIL. Then where the worst call is, by "
    "the\nlines "
    "of the model, and a line with the same numbers for each output.\n"
    "Exit status: 0 within the bounds, 1 the input is wrong, 2 the command "
    "line is wrong, 3 out of a bound.\n";

static constexpr host::OptionSpec specs[] = {
    {"--package", "DIR", "compiled from the model (default: compiles it, -O2)"},
    {"--tokens", "1,2,3", "token ids to step through (default: 16 of them)"},
    {"--entry", "NAME", "run this entry instead"},
    {"--inputs", "X.npz", "its inputs by name"},
    {"--checkpoint", "PATH", "the checkpoint, instead of the model's own"},
    {"--threads", "N", "(0: one for each CPU)"},
    {"--help", "", "print this"},
    {"--version", "", "print the version"},
};

namespace {
struct Request {
  std::string model, package, entry, inputs, checkpoint;
  std::vector<int32_t> tokens;
  int64_t threads = 0;
};
} // namespace

static bool readRequest(const host::Options &options, Request &request,
                        std::string &error) {
  constexpr int64_t most = INT32_MAX;
  if (options.positional.size() != 1) {
    error = fmt::format("expected one model (.mlir), got {} arguments",
                        options.positional.size());
    return false;
  }
  request.model = options.positional[0];
  if (request.model == "-") {
    error = "expected the file of a model: stdin cannot be read twice";
    return false;
  }
  if (options.has("--entry") != options.has("--inputs")) {
    error = "expected --entry and --inputs together";
    return false;
  }
  if (options.has("--entry") && options.has("--tokens")) {
    error = "expected --tokens or --entry, got both";
    return false;
  }
  request.package = options.get("--package");
  request.entry = options.get("--entry");
  request.inputs = options.get("--inputs");
  request.checkpoint = options.get("--checkpoint");
  return options.integers("--tokens", 0, most, request.tokens, error) &&
         options.integer("--threads", 0, 1024, request.threads, error);
}

/// Arbitrary but fixed ids below `vocab`.
static std::vector<int32_t> defaultTokens(const gptc_info &info) {
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < std::min<int64_t>(16, info.context); ++i)
    // Knuth's multiplicative hash spreads the ids over the vocabulary.
    tokens.push_back(static_cast<int32_t>(
        ((static_cast<uint64_t>(i + 1) * 0x9e3779b97f4a7c15u) >> 33) %
        static_cast<uint64_t>(info.vocab)));
  return tokens;
}

/// Where a call comes from: file:line:col and names, as the manifest says.
static std::string sourceOf(const host::Package &package,
                            const KernelReport &report) {
  const nlohmann::json &manifest = package.manifest();
  std::string text;
  for (const nlohmann::json &entry :
       manifest.value("entries", nlohmann::json::array())) {
    if (entry.value("name", "") != report.entry)
      continue;
    const auto &calls = entry.value("calls", nlohmann::json::array());
    if (report.call < static_cast<int64_t>(calls.size()))
      for (const nlohmann::json &place :
           calls[report.call].value("source", nlohmann::json::array()))
        if (place.is_string())
          text += (text.empty() ? "" : ", ") + place.get<std::string>();
  }
  return text.empty() ? "an unknown place" : text;
}

static std::string worstLine(const host::Package &package,
                             const KernelReport &report) {
  const Difference &worst = report.worst;
  return fmt::format(
      "worst call of {}: @{} call {}, {}, element {}: expected {:.9g}, "
      "got {:.9g}; from {}\n",
      report.kernel, report.entry, report.call, report.what, worst.index,
      worst.exact, worst.actual, sourceOf(package, report));
}

static std::string numbers(const Difference &difference) {
  return fmt::format("{:>10.2e} {:>10.2e} {:>10.2e}  {}", difference.error,
                     difference.relative(), difference.bound,
                     difference.ok() ? "ok" : "FAIL");
}

/// Prints everything; 0, 3 if something is out of its bound, or 1 if nobody can
/// read that.
static int printReport(const host::Package &package, const EndToEnd &run) {
  const auto &kernels = run.kernels().reports();
  size_t width = 6;
  for (const KernelReport &report : kernels)
    width = std::max(width, report.kernel.size());
  std::string text =
      fmt::format("{:<{}} {:>5} {:>10} {:>10} {:>10}\n", "kernel", width,
                  "calls", "max error", "error/rms", "bound");
  bool good = true;
  const KernelReport *worst = nullptr;
  for (const KernelReport &report : kernels) {
    text += fmt::format("{:<{}} {:>5} {}\n", report.kernel, width, report.calls,
                        numbers(report.worst));
    good &= report.worst.ok();
    if (!worst || report.worst.worseThan(worst->worst))
      worst = &report;
  }
  for (const KernelReport &report : kernels)
    if (!report.worst.ok())
      text += worstLine(package, report);
  if (good && worst)
    text += worstLine(package, *worst);
  for (const OutputReport &output : run.outputs()) {
    text += fmt::format("end to end: {} [{}]: {}\n", output.name,
                        reference::shapeText(output.shape),
                        numbers(output.difference));
    good &= output.difference.ok();
  }
  int status = good ? 0 : 3;
  std::string error;
  return host::put(text, error) ? status : report(error, status ? status : 1);
}

static int runCheck(Request request) {
  TemporaryFolder folder;
  if (request.package.empty()) {
    if (!folder.create())
      return 1;
    request.package = folder.path("package");
    if (int status =
            compilePackage(request.model, request.checkpoint, request.package))
      return status;
  }
  std::string error;
  auto package = host::Package::load(request.package, error);
  if (!package)
    return report(error);
  CheckedModel model;
  if (int status = model.load(request.model, request.checkpoint, *package))
    return status;

  EndToEnd run(model, *package, request.threads);
  if (request.entry.empty() && package->info().vocab == 0)
    return report("expected --entry and --inputs: the package has no stepping "
                  "entry",
                  2);
  if (request.entry.empty() && request.tokens.empty())
    request.tokens = defaultTokens(package->info());
  int status = request.entry.empty() ? run.steps(request.tokens)
                                     : run.entry(request.entry, request.inputs);
  return status ? status : printReport(*package, run);
}

int gptc::checkTool(int argc, const char *const *argv) {
  int status;
  auto options =
      host::commandLine("gptc-check", usage, specs, argc, argv, status);
  if (!options)
    return status;
  std::string error;
  Request request;
  if (!readRequest(*options, request, error))
    return report(error, 2);
  // A member of the manifest that is not what its schema says.
  try {
    return runCheck(std::move(request));
  } catch (const nlohmann::json::exception &why) {
    return report(fmt::format("manifest.json of the package: {}; compile it "
                              "again",
                              why.what()));
  }
}
