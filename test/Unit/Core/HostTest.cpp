//===- HostTest.cpp - Memory and threads that the host gives --------------===//
//
// Compiled as CoreTest.cpp is.
//
//===----------------------------------------------------------------------===//

#include "CoreFixture.h"
#include <cstdlib>
#include <thread>

using namespace core;

namespace {

TEST_F(Core, OneThreadAtATime) {
#ifdef TOY_FATBIN
  GTEST_SKIP() << "a GPU does not use the host's threads";
#endif
  gptc_host host{};
  static gptc_session *shared;
  static gptc_status inner;
  host.size = sizeof(host);
  // A host's threads, which meanwhile call into the session once more.
  host.parallel = [](void *, int32_t n, void (*body)(void *, int32_t),
                     void *data) {
    std::vector<std::thread> threads;
    for (int32_t i = 0; i < n; ++i)
      threads.emplace_back([=] { body(data, i); });
    for (std::thread &thread : threads)
      thread.join();
    inner = api.fork(shared, 0, 0, 0);
  };
  gptc_limits limits{};
  limits.threads = 3;
  open(limits, &host);
  shared = session;
  add(0, 0, prompt);
  ASSERT_EQ(step(), GPTC_OK);
  EXPECT_EQ(row(10), toy::reference(prompt));
  EXPECT_EQ(inner, GPTC_BUSY);
  EXPECT_EQ(api.fork(session, 0, 0, 0), GPTC_OK);
}

TEST_F(Core, HostMemoryIsGivenBack) {
  static int64_t balance, blocks;
  balance = blocks = 0;
  gptc_host host{};
  host.size = sizeof(host);
  host.allocate = [](void *, size_t bytes, size_t alignment) {
    balance += int64_t(bytes);
    ++blocks;
    return aligned_alloc(alignment,
                         (bytes + alignment - 1) / alignment * alignment);
  };
  host.release = [](void *, void *pointer, size_t bytes) {
    balance -= int64_t(bytes);
    free(pointer);
  };
  open({}, &host);
  add(0, 0, prompt);
  int64_t before = blocks;
  ASSERT_EQ(step(), GPTC_OK);
  EXPECT_EQ(blocks, before) << "a step allocates nothing";
  EXPECT_EQ(row(10), toy::reference(prompt));
  // The session keeps the model alive.
  api.close(model);
  model = nullptr;
  add(0, 11, {1});
  EXPECT_EQ(step(), GPTC_OK);
  api.close(session);
  session = nullptr;
  EXPECT_EQ(balance, 0);
  host.allocate = [](void *, size_t, size_t) -> void * { return nullptr; };
  toy::Weights weights;
  gptc_open_params params{sizeof(params), nullptr, weights.tensors, 3,
                          &host,          0};
  EXPECT_EQ(api.open(&params, &model), GPTC_NO_MEMORY);
}

/// A run that finds no memory leaves the steps what they have.
TEST_F(Core, StepsGoOnWithoutMemoryForARun) {
#ifdef TOY_FATBIN
  GTEST_SKIP() << "the GPU's memory: DeviceTest.cpp";
#endif
  static int64_t left; // blocks that there still are
  gptc_host host{};
  host.size = sizeof(host);
  host.allocate = [](void *, size_t bytes, size_t alignment) {
    return left-- > 0 ? aligned_alloc(alignment, (bytes + alignment - 1) /
                                                     alignment * alignment)
                      : nullptr;
  };
  host.release = [](void *, void *pointer, size_t) { free(pointer); };
  left = INT64_MAX;
  open({}, &host);
  for (int64_t blocks = 0;; ++blocks) {
    toy::Gather gather;
    left = blocks;
    gptc_status status = gather.run(api, session);
    left = INT64_MAX;
    add(0, 0, prompt);
    ASSERT_EQ(step(), GPTC_OK) << api.last_error();
    EXPECT_EQ(row(10), toy::reference(prompt));
    if (status == GPTC_OK) {
      EXPECT_TRUE(gather.isRight());
      EXPECT_GT(blocks, 0);
      return;
    }
    EXPECT_EQ(status, GPTC_NO_MEMORY);
  }
}

} // namespace
