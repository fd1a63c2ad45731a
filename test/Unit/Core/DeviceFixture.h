//===- DeviceFixture.h - The toy package behind a late driver --*- C++ -*-===//
//
// A driver's calls by name, and a fixture at whose end nothing is left in the
// driver. libcuda.so.1 is LazyDriver.cpp.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_TEST_UNIT_CORE_DEVICEFIXTURE_H
#define GPTC_TEST_UNIT_CORE_DEVICEFIXTURE_H

#include "LazyDriver.h"
#include "ToyModel.h"
#include <cstring>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <string>

namespace device {

inline const gptc_api &api = *gptc_core_api();
using Address = uint64_t;

/// A call of the driver, by its name; fails the test unless it succeeds.
template <typename... A> void driver(const char *name, A... arguments) {
  static void *library = dlopen("libcuda.so.1", RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  void *found = dlsym(library, name);
  ASSERT_NE(found, nullptr) << name;
  ASSERT_EQ(reinterpret_cast<int (*)(A...)>(found)(arguments...), 0) << name;
}
inline LazyDriver &lazy() {
  static auto *found = static_cast<LazyDriver *>(
      dlsym(dlopen("libcuda.so.1", RTLD_NOW), "lazyDriver"));
  return *found;
}
inline void *current() {
  void *context = nullptr;
  driver("cuCtxGetCurrent", &context);
  return context;
}

struct Batch {
  std::vector<int32_t> tokens, positions, sequences, rows;
};
/// Tokens of one sequence from `position` on, the last one's logits wanted.
inline Batch batchOf(const std::vector<int32_t> &ids, int32_t position = 0,
                     int32_t sequence = 0) {
  Batch batch;
  for (int32_t id : ids) {
    batch.tokens.push_back(id);
    batch.positions.push_back(position++);
    batch.sequences.push_back(sequence);
  }
  batch.rows = {int32_t(ids.size()) - 1};
  return batch;
}
inline gptc_status step(gptc_session *session, Batch batch, void *logits) {
  gptc_batch given{int64_t(batch.tokens.size()), batch.tokens.data(),
                   batch.positions.data(),       batch.sequences.data(),
                   int64_t(batch.rows.size()),   batch.rows.data()};
  gptc_status status = api.step(session, &given, static_cast<float *>(logits));
  // A batch is the caller's again.
  for (auto *values :
       {&batch.tokens, &batch.positions, &batch.sequences, &batch.rows})
    std::fill(values->begin(), values->end(), -1);
  return status;
}

class Device : public ::testing::Test {
protected:
  void SetUp() override {
    host.size = sizeof(host);
    driver("cuInit", 0u);
    lazy() = {};
  }
  void TearDown() override {
    lazy().failAt = 0;
    api.close(session);
    api.close(model);
    expectNothingLeft();
    if (context) {
      void *is = current();
      EXPECT_EQ(is, context) << "the host's context is current as before";
      if (stream && !lost)
        driver("cuStreamDestroy_v2", stream);
      driver("cuCtxDestroy_v2", context);
    }
    EXPECT_EQ(current(), nullptr);
  }
  void expectNothingLeft() {
    const LazyDriver &d = lazy();
    EXPECT_EQ(d.memory, int64_t(hostBlocks)) << d.memoryBytes << " bytes";
    EXPECT_EQ(d.streams, stream != nullptr);
    EXPECT_EQ(d.events + d.graphs + d.executables + d.modules, 0);
    EXPECT_EQ(d.primaryContexts, 0);
    EXPECT_EQ(d.freedInUse, 0);
  }

  /// A context and a stream of the host.
  void makeContext() {
    driver("cuCtxCreate_v2", &context, 0u, 0);
    driver("cuStreamCreate", &stream, 1u);
    host.stream = stream;
  }
  gptc_status tryOpen(gptc_model **opened) {
    toy::Weights weights;
    gptc_open_params params{sizeof(params), nullptr, weights.tensors, 3,
                            &host,          0};
    return api.open(&params, opened);
  }
  void open(gptc_limits limits = {}) {
    ASSERT_EQ(tryOpen(&model), GPTC_OK) << api.last_error();
    limits.size = sizeof(limits);
    ASSERT_EQ(api.session(model, &limits, &session), GPTC_OK)
        << api.last_error();
  }
  /// Memory of the host's on the GPU, all bytes 0x55.
  Address allocate(size_t bytes) {
    Address address = 0;
    driver("cuMemAlloc_v2", &address, bytes);
    std::vector<char> pattern(bytes, 0x55);
    driver("cuMemcpyHtoD_v2", address, (const void *)pattern.data(), bytes);
    ++hostBlocks;
    return address;
  }
  void release(Address address) {
    driver("cuMemFree_v2", address);
    --hostBlocks;
  }
  /// What the GPU's memory holds now, whatever is queued.
  std::vector<float> peek(Address address, size_t count) {
    std::vector<float> values(count);
    driver("cuMemcpyDtoH_v2", (void *)values.data(), address, count * 4);
    return values;
  }
  void says(const char *text) {
    EXPECT_NE(std::string(api.last_error()).find(text), std::string::npos)
        << api.last_error();
  }

  gptc_model *model = nullptr;
  gptc_session *session = nullptr;
  void *context = nullptr, *stream = nullptr;
  gptc_host host{};
  size_t hostBlocks = 0;
  bool lost = false; ///< the context is, with all that the host has in it
};

inline const std::vector<int32_t> prompt = {1, 5, 19, 0, 7};
constexpr size_t rowBytes = toy::V * sizeof(float);

} // namespace device

#endif // GPTC_TEST_UNIT_CORE_DEVICEFIXTURE_H
