//===- Compiled.cpp - A model compiled for a benchmark --------------------===//

#include "Compiled.h"
#include "gptc/Driver/Driver.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>
#include <thread>

using namespace gptc;
using namespace gptc::bench;
namespace fs = std::filesystem;

std::vector<float> gptc::bench::randomNumbers(int64_t count) {
  std::minstd_rand random(1);
  std::vector<float> numbers(count);
  for (float &number : numbers)
    number = static_cast<float>(random()) / 1073741824.0f - 1;
  return numbers;
}

/// The numbers' first or second half word, or blocks of 32 with small scales:
/// any numbers do, but no NaN and no infinity.
static std::vector<uint8_t> randomWeight(gptc_dtype type, int64_t count) {
  std::minstd_rand random(2);
  std::vector<uint8_t> bytes;
  auto put16 = [&](uint16_t word) {
    bytes.push_back(static_cast<uint8_t>(word));
    bytes.push_back(static_cast<uint8_t>(word >> 8));
  };
  if (type == GPTC_F32) {
    std::vector<float> numbers = randomNumbers(count);
    bytes.resize(4 * count);
    std::memcpy(bytes.data(), numbers.data(), bytes.size());
  } else if (type == GPTC_F16 || type == GPTC_BF16) {
    // Both formats: a sign, an exponent of numbers below 1, random digits.
    for (int64_t i = 0; i < count; ++i)
      put16(static_cast<uint16_t>((random() & 0x807f) |
                                  (type == GPTC_F16 ? 0x3800 : 0x3f00)));
  } else {
    int64_t codes = type == GPTC_Q8_0 ? 32 : 16;
    for (int64_t block = 0; block < count / 32; ++block) {
      put16(0x2000); // a scale of 1/128 as f16
      if (type == GPTC_Q4_1)
        put16(0xb000); // a minimum of -1/8
      for (int64_t i = 0; i < codes; ++i)
        bytes.push_back(static_cast<uint8_t>(random() >> 8));
    }
  }
  return bytes;
}

static gptc_dtype dtypeOf(const std::string &name) {
  constexpr const char *names[] = {"f32",  "f16",  "bf16",
                                   "q8_0", "q4_0", "q4_1"};
  for (int i = 0; i < 6; ++i)
    if (name == names[i])
      return static_cast<gptc_dtype>(i);
  throw std::runtime_error("expected a storage format, got '" + name + "'");
}

struct Compiled::Session {
  host::Handle<gptc_session> handle;
  std::string kernel; ///< that is timed
  double seconds = 0;

  static void event(void *user, const gptc_event *event) {
    auto &self = *static_cast<Session *>(user);
    if (std::string_view(event->kernel).starts_with(self.kernel))
      self.seconds += event->seconds;
  }
};

static void check(const gptc_api &api, gptc_status status) {
  if (status != GPTC_OK)
    throw std::runtime_error(api.last_error());
}

Compiled::Compiled(const std::string &text, std::vector<std::string> options) {
  folder = (fs::temp_directory_path() / "gptc-microbench-XXXXXX").string();
  if (!mkdtemp(folder.data()))
    throw std::runtime_error(folder + ": not created");
  std::string file = folder + "/model.mlir", kernels = folder + "/kernels";
  std::ofstream(file) << text;
  std::vector<const char *> line = {"gptc", file.c_str(), "-o", kernels.c_str(),
                                    "--no-weights"};
  for (const std::string &option : options)
    line.push_back(option.c_str());
  if (driverMain(static_cast<int>(line.size()), line.data()))
    throw std::runtime_error("the model does not compile");
  std::string error;
  auto loaded = host::Package::load(kernels, error);
  if (!loaded)
    throw std::runtime_error(error);
  package.emplace(std::move(*loaded));

  std::vector<std::vector<uint8_t>> data;
  std::vector<gptc_tensor> weights;
  weights.reserve(1); // none are still the host's, not those of a file
  for (const auto &weight : package->manifest()["weights"]) {
    gptc_tensor tensor{};
    tensor.name = weight["name"].get_ref<const std::string &>().c_str();
    tensor.dtype = dtypeOf(weight["dtype"]);
    int64_t count = 1;
    for (const auto &size : weight["shape"])
      count *= tensor.shape[tensor.rank++] = size;
    data.push_back(randomWeight(tensor.dtype, count));
    tensor.data = data.back().data();
    tensor.capacity_bytes = data.back().size();
    weights.push_back(tensor);
  }
  gptc_open_params params{};
  params.size = sizeof(params);
  params.weights = weights.data();
  params.weight_count = weights.size();
  gptc_model *opened = nullptr;
  check(package->api(), package->api().open(&params, &opened));
  model.emplace(package->api(), opened);
}

Compiled::~Compiled() {
  sessions.clear();
  model.reset();
  package.reset();
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

Compiled::Session &Compiled::session(int64_t threads) {
  std::unique_ptr<Session> &found = sessions[threads];
  if (!found) {
    gptc_limits limits{};
    limits.size = sizeof(limits);
    limits.sequences = 8;
    limits.threads = static_cast<int32_t>(threads);
    std::string error;
    auto opened =
        host::openSession(package->api(), model->get(), limits, error);
    if (!opened)
      throw std::runtime_error(error);
    found.reset(new Session{std::move(*opened), {}, 0});
    check(package->api(), package->api().observe(found->handle.get(),
                                                 Session::event, found.get()));
  }
  found->seconds = 0;
  return *found;
}

double Compiled::run(int64_t threads, const std::string &entry,
                     const std::vector<Input> &inputs,
                     const std::string &output, std::string_view kernel) {
  Session &to = session(threads);
  to.kernel = kernel;
  std::vector<gptc_tensor> given;
  for (const Input &input : inputs) {
    gptc_tensor tensor{};
    tensor.name = input.name.c_str();
    tensor.rank = static_cast<int32_t>(input.shape.size());
    std::ranges::copy(input.shape, tensor.shape);
    tensor.data = const_cast<float *>(input.data.data());
    tensor.capacity_bytes = 4 * input.data.size();
    given.push_back(tensor);
  }
  gptc_tensor wanted{};
  wanted.name = output.c_str();
  auto call = [&] {
    check(package->api(),
          package->api().run(to.handle.get(), entry.c_str(), given.data(),
                             given.size(), &wanted, 1));
  };
  call(); // its shape
  int64_t count = 1;
  for (int32_t d = 0; d < wanted.rank; ++d)
    count *= wanted.shape[d];
  static std::vector<float> room;
  room.resize(std::max<size_t>(room.size(), count));
  wanted.data = room.data();
  wanted.capacity_bytes = 4 * count;
  call();
  return to.seconds;
}

double Compiled::step(int64_t threads, int64_t sequences, int64_t count,
                      int64_t position, std::string_view kernel) {
  Session &to = session(threads);
  to.kernel = kernel;
  std::vector<int32_t> tokens, positions, owners;
  for (int64_t s = 0; s < sequences; ++s)
    for (int64_t i = 0; i < count; ++i) {
      tokens.push_back(static_cast<int32_t>(i % package->info().vocab));
      positions.push_back(static_cast<int32_t>(position + i));
      owners.push_back(static_cast<int32_t>(s));
    }
  int32_t row = 0;
  std::vector<float> logits(package->info().vocab);
  gptc_batch batch{static_cast<int64_t>(tokens.size()),
                   tokens.data(),
                   positions.data(),
                   owners.data(),
                   1,
                   &row};
  check(package->api(),
        package->api().step(to.handle.get(), &batch, logits.data()));
  return to.seconds;
}

int64_t Compiled::packedBytes(const std::string &name) const {
  for (const auto &weight : package->manifest()["weights"])
    if (weight["name"] == name)
      return weight["bytes"];
  throw std::runtime_error("no weight '" + name + "'");
}

Compiled *gptc::bench::compiledOnce(benchmark::State &state,
                                    const std::string &text,
                                    const std::vector<std::string> &options) {
  static std::map<std::pair<std::string, std::vector<std::string>>,
                  std::unique_ptr<Compiled>>
      all;
  auto &entry = all[{text, options}];
  try {
    if (!entry)
      entry = std::make_unique<Compiled>(text, options);
  } catch (const std::exception &error) {
    state.SkipWithError(error.what());
  }
  return entry.get();
}

void gptc::bench::setRates(benchmark::State &state, double flops,
                           double bytes) {
  using benchmark::Counter;
  auto rate = Counter::kIsIterationInvariantRate;
  if (flops > 0)
    state.counters["FLOP/s"] = Counter(flops, rate);
  state.counters["B/s"] = Counter(bytes, rate);
}

std::vector<int64_t> gptc::bench::threadCounts() {
  int64_t all = std::max(std::thread::hardware_concurrency(), 1u);
  return all == 1 ? std::vector<int64_t>{1} : std::vector<int64_t>{1, all};
}
