//===- DeviceTest.cpp - The runtime and the GPU's driver ------------------===//
//
// What only packages for a GPU do: tensors in its memory, streams and contexts
// of the host, errors of a kernel.
//
//===----------------------------------------------------------------------===//

#include "DeviceFixture.h"
#include <functional>
#include <thread>

using namespace device;

namespace {

TEST_F(Device, HostLogitsAreThereWhenAStepReturns) {
  lazy().lazy = true;
  open();
  std::vector<float> logits(toy::V);
  ASSERT_EQ(step(session, batchOf(prompt), logits.data()), GPTC_OK)
      << api.last_error();
  EXPECT_EQ(logits, toy::reference(prompt));
}

/// Steps are queued one behind the other; the host copies after each of them
/// on its stream and waits once.
TEST_F(Device, StepsAreQueuedOnTheHostsStream) {
  makeContext();
  open();
  Address logits = allocate(rowBytes);
  lazy().lazy = true;
  std::vector<int32_t> ids = prompt;
  std::vector<std::vector<float>> copies(6, std::vector<float>(toy::V));
  for (size_t i = 0; i < copies.size(); ++i) {
    Batch batch = batchOf(prompt);
    if (i) {
      ids.push_back(int32_t(i * 3));
      batch = batchOf({ids.back()}, int32_t(ids.size()) - 1);
    }
    ASSERT_EQ(step(session, batch, (void *)logits), GPTC_OK)
        << api.last_error();
    EXPECT_EQ(lazy().launchStream, stream);
    driver("cuMemcpyDtoHAsync_v2", (void *)copies[i].data(), logits, rowBytes,
           stream);
  }
  driver("cuStreamSynchronize", stream);
  for (size_t i = 0; i < copies.size(); ++i)
    EXPECT_EQ(copies[i],
              toy::reference({ids.begin(), ids.begin() + prompt.size() + i}))
        << i;
  release(logits);
}

TEST_F(Device, AStepOfLogitsOnTheGpuDoesNotWait) {
  makeContext();
  open();
  Address logits = allocate(rowBytes);
  // Sizes that the graph has from the step before.
  ASSERT_EQ(step(session, batchOf(prompt), (void *)logits), GPTC_OK);
  driver("cuStreamSynchronize", stream);
  driver("cuMemsetD8Async", logits, (unsigned char)0x55, rowBytes, stream);
  lazy().lazy = true;
  ASSERT_EQ(step(session, batchOf(prompt), (void *)logits), GPTC_OK);
#ifdef TOY_RAGGED
  std::vector<float> untouched(toy::V);
  std::memset(untouched.data(), 0x55, rowBytes);
  EXPECT_EQ(peek(logits, toy::V), untouched) << "it is only queued";
#endif
  driver("cuStreamSynchronize", stream);
  EXPECT_EQ(peek(logits, toy::V), toy::reference(prompt));
  release(logits);
}

/// A step's tables are copied later: pages that a fork moves meanwhile are
/// still those of the step.
TEST_F(Device, ForksWaitForWhatIsQueued) {
  makeContext();
  gptc_limits limits{};
  limits.sequences = 3;
  open(limits);
  Address logits = allocate(rowBytes);
  for (int32_t s = 0; s < 2; ++s)
    ASSERT_EQ(step(session,
                   batchOf(s ? prompt : std::vector<int32_t>(5, 2), 0, s),
                   (void *)logits),
              GPTC_OK);
  // The graph has the sizes of one token from here on.
  ASSERT_EQ(step(session, batchOf({9}, 0, 2), (void *)logits), GPTC_OK);
  driver("cuStreamSynchronize", stream);
  lazy().lazy = true;
  ASSERT_EQ(step(session, batchOf({9}, 5, 1), (void *)logits), GPTC_OK);
  ASSERT_EQ(api.fork(session, 0, 1, 5), GPTC_OK);
  driver("cuStreamSynchronize", stream);
  EXPECT_EQ(peek(logits, toy::V), toy::reference({1, 5, 19, 0, 7, 9}));
  ASSERT_EQ(step(session, batchOf({9}, 5, 1), (void *)logits), GPTC_OK);
  driver("cuStreamSynchronize", stream);
  EXPECT_EQ(peek(logits, toy::V), toy::reference({2, 2, 2, 2, 2, 9}));
  release(logits);
}

TEST_F(Device, RunTakesTensorsOfTheGpu) {
  makeContext();
  open();
  constexpr int64_t n = 5;
  std::vector<float> x(n * toy::D), y(n * toy::D, -1), expected;
  std::vector<int32_t> index = {4, 19, 0, 7, 4};
  for (int64_t i = 0; i < n * toy::D; ++i) {
    x[i] = float(i);
    expected.push_back(x[i] + toy::tableAt(index[i / toy::D], i % toy::D));
  }
  const size_t bytes = x.size() * 4;
  Address in = allocate(bytes), out = allocate(bytes);
  lazy().lazy = true;
  // Queued by the host, before and after.
  driver("cuMemcpyHtoDAsync_v2", in, (const void *)x.data(), bytes, stream);
  for (bool fromGpu : {true, false})
    for (bool toGpu : {true, false}) {
      gptc_tensor inputs[] = {
          {"index", GPTC_I32, 1, {n}, index.data(), 0},
          {"x", GPTC_F32, 2, {n, toy::D}, fromGpu ? (void *)in : x.data(), 0}};
      gptc_tensor output{"y",  GPTC_F32, 0, {}, toGpu ? (void *)out : y.data(),
                         bytes};
      std::fill(y.begin(), y.end(), -1);
      ASSERT_EQ(api.run(session, "gather", inputs, 2, &output, 1), GPTC_OK)
          << api.last_error();
      if (toGpu) {
        driver("cuMemcpyDtoHAsync_v2", (void *)y.data(), out, bytes, stream);
        driver("cuStreamSynchronize", stream);
      }
      EXPECT_EQ(y, expected) << fromGpu << toGpu;
    }
  gptc_tensor inputs[] = {{"index", GPTC_I32, 1, {n}, (void *)out, 0},
                          {"x", GPTC_F32, 2, {n, toy::D}, x.data(), 0}};
  gptc_tensor output{"y", GPTC_F32, 0, {}, y.data(), bytes};
  EXPECT_EQ(api.run(session, "gather", inputs, 2, &output, 1),
            GPTC_INVALID_ARGUMENT);
  says("input 'index': expected the host's memory, since its values are "
       "checked, got the GPU's");
  release(in);
  release(out);
}

TEST_F(Device, ClosingWaits) {
  makeContext();
  open();
  Address logits = allocate(rowBytes);
  lazy().lazy = true;
  ASSERT_EQ(step(session, batchOf(prompt), (void *)logits), GPTC_OK);
  api.close(session);
  session = nullptr;
  EXPECT_EQ(peek(logits, toy::V), toy::reference(prompt));
  release(logits);
}

/// Of one model on streams of their own, of another on the host's.
TEST_F(Device, SessionsOnSeveralStreams) {
  makeContext();
  open();
  host.stream = nullptr;
  gptc_model *other = nullptr;
  ASSERT_EQ(tryOpen(&other), GPTC_OK) << api.last_error();
  gptc_session *sessions[3] = {session, nullptr, nullptr};
  gptc_limits limits{sizeof(limits), 0, 0, 0, 0, 0};
  for (gptc_session *&each : {std::ref(sessions[1]), std::ref(sessions[2])})
    ASSERT_EQ(api.session(other, &limits, &each), GPTC_OK);
  lazy().lazy = true;
  Address logits[3];
  std::vector<int32_t> ids[3];
  void *streams[3];
  for (int s = 0; s < 3; ++s)
    logits[s] = allocate(rowBytes);
  for (int32_t position = 0; position < 8; ++position)
    for (int s = 0; s < 3; ++s) {
      ids[s].push_back((position * (s + 2) + s) % int32_t(toy::V));
      ASSERT_EQ(step(sessions[s], batchOf({ids[s].back()}, position),
                     (void *)logits[s]),
                GPTC_OK)
          << api.last_error();
      streams[s] = lazy().launchStream;
    }
  EXPECT_EQ(streams[0], stream);
  EXPECT_NE(streams[1], stream);
  EXPECT_NE(streams[2], stream);
  EXPECT_NE(streams[1], streams[2]);
  for (int s : {2, 0, 1}) {
    driver("cuStreamSynchronize", streams[s]);
    EXPECT_EQ(peek(logits[s], toy::V), toy::reference(ids[s])) << s;
  }
  for (Address address : logits)
    release(address);
  api.close(sessions[1]);
  api.close(sessions[2]);
  api.close(other);
}

TEST_F(Device, TheHostsContext) {
  makeContext();
  open();
  EXPECT_EQ(current(), context);
  EXPECT_EQ(lazy().primaryContexts, 0);
  // A thread without a context, and one with another.
  for (bool another : {false, true})
    std::thread([&] {
      void *mine = nullptr;
      if (another)
        driver("cuDevicePrimaryCtxRetain", &mine, 0);
      if (another)
        driver("cuCtxSetCurrent", mine);
      std::vector<float> logits(toy::V);
      EXPECT_EQ(step(session, batchOf(prompt), logits.data()), GPTC_OK)
          << api.last_error();
      EXPECT_EQ(logits, toy::reference(prompt));
      EXPECT_EQ(current(), mine);
      void *none = nullptr;
      driver("cuCtxSetCurrent", none);
    }).join();
  api.close(session);
  api.close(model);
  session = nullptr;
  model = nullptr;
  driver("cuDevicePrimaryCtxRelease_v2", 0);
  lost = true; // the emulator's contexts share their streams
}

TEST_F(Device, AStreamNeedsItsContext) {
  makeContext();
  void *none = nullptr;
  driver("cuCtxSetCurrent", none);
  EXPECT_EQ(tryOpen(&model), GPTC_INVALID_ARGUMENT);
  says("expected the context of host->stream to be current");
  driver("cuCtxSetCurrent", context);
}

TEST_F(Device, ThePrimaryContext) {
  open();
  EXPECT_EQ(lazy().primaryContexts, 1);
  EXPECT_EQ(current(), nullptr);
  std::vector<float> logits(toy::V);
  ASSERT_EQ(step(session, batchOf(prompt), logits.data()), GPTC_OK);
  EXPECT_EQ(logits, toy::reference(prompt));
}

TEST_F(Device, NoMemory) {
  open();
  const LazyDriver before = lazy();
  gptc_session *large = nullptr;
  gptc_limits limits{sizeof(limits), 0, 100, 20000000, 0, 0};
  EXPECT_EQ(api.session(model, &limits, &large), GPTC_NO_MEMORY);
  says("bytes on the GPU: out of memory");
  EXPECT_EQ(large, nullptr);
  EXPECT_EQ(lazy().memoryBytes, before.memoryBytes);
  EXPECT_EQ(lazy().streams, before.streams);
  // The rest goes on.
  std::vector<float> logits(toy::V);
  ASSERT_EQ(step(session, batchOf(prompt), logits.data()), GPTC_OK);
  EXPECT_EQ(logits, toy::reference(prompt));
}

/// An error of a kernel itself: it writes logits past the host's memory.
TEST_F(Device, AKernelsErrorIsTheDrivers) {
  makeContext();
  open();
  Address small = allocate(4);
  std::vector<float> logits(toy::V);
  gptc_status status = step(session, batchOf(prompt), (void *)small);
  // Found when it is queued, or by the next step.
  if (status == GPTC_OK)
    status = step(session, batchOf(prompt), logits.data());
  EXPECT_EQ(status, GPTC_DEVICE_ERROR);
#ifdef TOY_RAGGED
  says("the GPU's driver reported error 700: an illegal memory access");
#else // logits are copied there
  says("the GPU's driver reported error 1: invalid argument");
#endif
  EXPECT_EQ(step(session, batchOf(prompt), logits.data()), GPTC_DEVICE_ERROR)
      << "it stays";
  says("the GPU's driver reported error");
  lost = true;
}

} // namespace
