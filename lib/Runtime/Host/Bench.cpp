//===- Bench.cpp - The measurements of gptc-bench -------------------------===//
//
// Token ids are arbitrary but fixed; no sampling is measured. The kernels are
// timed in a run of their own, so that the observer does not slow the others.
// The session's memory is what it takes from a counting allocator, and on a GPU
// what its driver then has less of.
//
//===----------------------------------------------------------------------===//

#include "Bench.h"
#include "BenchWork.h"
#include "Gpu.h"
#include "gptc/Runtime/Host/Generation.h"
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>

using namespace gptc::host;

namespace {

double now() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  size_t half = values.size() / 2;
  return values.size() % 2 ? values[half]
                           : (values[half - 1] + values[half]) / 2;
}

/// Feeds the sequences; knows nothing of time.
class Feeder {
public:
  Feeder(const gptc_api &api, gptc_session *session,
         const BenchRequest &request)
      : api(api), session(session), request(request), vocab(api.info()->vocab),
        logits(request.batch * vocab) {}

  /// Where the tokens of each step are written down before it; null: nowhere.
  StepTokens *seen = nullptr;

  bool prefill(std::string &error) {
    for (int64_t s = 0; s < request.batch; ++s)
      for (int64_t at = 0; at < request.prefill; at += stepTokens) {
        int64_t end = std::min(request.prefill, at + stepTokens);
        for (int64_t p = at; p < end; ++p)
          add(s, p);
        if (end == request.prefill)
          rows.push_back(static_cast<int32_t>(tokens.size() - 1));
        if (!step(error))
          return false;
      }
    return true;
  }
  bool decode(std::string &error) {
    for (int64_t i = 0; i < request.decode; ++i) {
      for (int64_t s = 0; s < request.batch; ++s) {
        rows.push_back(static_cast<int32_t>(s));
        add(s, request.prefill + i);
      }
      if (!step(error))
        return false;
    }
    return true;
  }

private:
  void add(int64_t sequence, int64_t position) {
    // Knuth's multiplicative hash spreads the ids over the vocabulary.
    uint64_t hash = static_cast<uint64_t>(sequence * 8191 + position + 1) *
                    0x9e3779b97f4a7c15u;
    tokens.push_back(
        static_cast<int32_t>((hash >> 33) % static_cast<uint64_t>(vocab)));
    positions.push_back(static_cast<int32_t>(position));
    sequences.push_back(static_cast<int32_t>(sequence));
  }
  bool step(std::string &error) {
    if (seen)
      note();
    gptc_batch batch{static_cast<int64_t>(tokens.size()),
                     tokens.data(),
                     positions.data(),
                     sequences.data(),
                     static_cast<int64_t>(rows.size()),
                     rows.data()};
    bool good = api.step(session, &batch, logits.data()) == GPTC_OK;
    if (!good)
      error = api.last_error();
    tokens.clear();
    positions.clear();
    sequences.clear();
    rows.clear();
    return good;
  }

  void note() {
    seen->positions = positions;
    seen->sequences.clear();
    for (size_t i = 0; i < positions.size(); ++i) {
      if (i == 0 || sequences[i] != sequences[i - 1])
        seen->sequences.emplace_back();
      seen->sequences.back().end = positions[i] + 1;
      ++seen->sequences.back().count;
    }
  }

  const gptc_api &api;
  gptc_session *session;
  const BenchRequest &request;
  int64_t vocab;
  std::vector<int32_t> tokens, positions, sequences, rows;
  std::vector<float> logits;
};

struct Observation {
  Observation(const Package &package,
              const std::optional<MachineLimits> &limits)
      : work(package.manifest()), limits(limits),
        bf16(std::string_view(package.info().precision) == "bf16") {}

  WorkOfKernels work;
  const std::optional<MachineLimits> &limits;
  bool bf16;
  StepTokens tokens; ///< of the step under way
  KernelWork KernelTime::*phase = &KernelTime::prefill;
  std::map<std::string, KernelTime> times;

  double limitSeconds(const CallWork &call) const {
    if (!limits || limits->f32 <= 0 || limits->readBytes <= 0)
      return 0;
    double peak = call.dot8 ? limits->int8
                  : bf16    ? std::max(limits->f32, limits->bf16)
                            : limits->f32;
    return std::max(call.flops / peak, call.bytes / limits->readBytes);
  }
  static void event(void *user, const gptc_event *event) {
    auto &self = *static_cast<Observation *>(user);
    KernelTime &time = self.times[event->kernel];
    time.name = event->kernel;
    KernelWork &sum = time.*self.phase;
    CallWork call = self.work.call(*event, self.tokens);
    ++sum.calls;
    sum.seconds += event->seconds;
    sum.flops += call.flops;
    sum.bytes += call.bytes;
    sum.limitSeconds += self.limitSeconds(call);
  }
};

/// Bytes that a session takes, measured by opening one.
std::optional<int64_t> sessionBytes(const Package &package,
                                    const gptc_limits &limits,
                                    const std::optional<Gpu> &gpu,
                                    std::string &error) {
  int64_t bytes = 0;
  gptc_host host{};
  host.size = sizeof(host);
  host.user = &bytes;
  host.allocate = [](void *user, size_t size, size_t alignment) {
    *static_cast<int64_t *>(user) += static_cast<int64_t>(size);
    return std::aligned_alloc(alignment,
                              (size + alignment - 1) / alignment * alignment);
  };
  host.release = [](void *user, void *pointer, size_t size) {
    *static_cast<int64_t *>(user) -= static_cast<int64_t>(size);
    std::free(pointer);
  };
  auto opened = package.open(&host, error);
  if (!opened)
    return std::nullopt;
  Handle<gptc_model> model(package.api(), *opened);
  auto all = [&] { return bytes + (gpu ? gpu->memoryUsed() : 0); };
  int64_t before = all();
  auto session = openSession(package.api(), model.get(), limits, error);
  if (!session)
    return std::nullopt;
  return all() - before;
}

} // namespace

std::optional<BenchResult> gptc::host::bench(const BenchRequest &request,
                                             const Package &package,
                                             std::string &error) {
  const gptc_api &api = package.api();
  const gptc_info &info = package.info();
  gptc_limits limits{};
  limits.size = sizeof(limits);
  limits.tokens =
      std::max(std::min(request.prefill, stepTokens), request.batch);
  limits.sequences = limits.rows = request.batch;
  int64_t positions = request.prefill + request.decode;
  if (info.page > 0)
    limits.pages = (positions + info.page - 1) / info.page * request.batch;
  limits.threads = static_cast<int32_t>(request.threads);

  BenchResult result;
  std::optional<Gpu> gpu;
  if (isForGpu(info)) {
    auto found = Gpu::open(error);
    if (!found)
      return std::nullopt;
    result.device = gpu.emplace(std::move(*found)).name();
  }
  // Twice, some seconds apart: other work on the machine may disturb one.
  auto probe = [&] {
    if (request.probe && !gpu)
      result.limits = best(result.limits.value_or(MachineLimits()),
                           probeMachine(request.threads, info.weights_bytes));
  };
  probe();
  auto bytes = sessionBytes(package, limits, gpu, error);
  if (!bytes)
    return std::nullopt;
  result.kvBytes = limits.pages * info.kv_page_bytes;
  // Little of it may fit into what the driver already held.
  result.workspaceBytes = std::max<int64_t>(*bytes - result.kvBytes, 0);

  auto opened = package.open(nullptr, error);
  if (!opened)
    return std::nullopt;
  Handle<gptc_model> model(api, *opened);
  auto session = openSession(api, model.get(), limits, error);
  if (!session)
    return std::nullopt;
  Feeder feeder(api, session->get(), request);

  // One run that does not count brings weights and pages into memory.
  std::vector<double> prefills, decodes;
  for (int64_t run = -1; run < request.runs; ++run) {
    double begin = now();
    if (!feeder.prefill(error))
      return std::nullopt;
    double middle = now();
    if (!feeder.decode(error))
      return std::nullopt;
    if (run >= 0) {
      prefills.push_back(middle - begin);
      decodes.push_back(now() - middle);
    }
  }
  result.prefillSeconds = median(prefills);
  result.decodeSeconds = median(decodes);

  probe();
  Observation observation(package, result.limits);
  feeder.seen = &observation.tokens;
  api.observe(session->get(), Observation::event, &observation);
  if (!feeder.prefill(error))
    return std::nullopt;
  observation.phase = &KernelTime::decode;
  if (!feeder.decode(error))
    return std::nullopt;
  api.observe(session->get(), nullptr, nullptr);
  for (auto &[name, time] : observation.times)
    result.kernels.push_back(std::move(time));
  std::ranges::sort(result.kernels, std::greater(), &KernelTime::seconds);
  return result;
}
