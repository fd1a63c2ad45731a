//===- DeviceFaultTest.cpp - Every call of the driver fails once ----------===//

#include "DeviceFixture.h"

using namespace device;

namespace {

constexpr int32_t launchFailed = 719, outOfMemory = 2; // of CUresult

/// What a program does, with a call that fails in it.
struct Life {
  gptc_status status = GPTC_OK;
  std::string message;
  bool right = true;

  void note(gptc_status got) {
    if (status != GPTC_OK || got == GPTC_OK)
      return;
    status = got;
    message = api.last_error();
  }
};

class Faults : public Device {
protected:
  Life live(bool onGpu, Address logits) {
    Life life;
    life.note(tryOpen(&model));
    gptc_limits limits{sizeof(limits), 0, 2, 0, 0, 0};
    if (model)
      life.note(api.session(model, &limits, &session));
    std::vector<float> row(toy::V);
    auto check = [&](const Batch &batch, const std::vector<int32_t> &ids) {
      if (!session)
        return;
      gptc_status status =
          step(session, batch, onGpu ? (void *)logits : row.data());
      life.note(status);
      if (status == GPTC_OK && !onGpu)
        life.right &= row == toy::reference(ids);
    };
    check(batchOf(prompt), prompt);
    if (session)
      api.fork(session, 0, 1, 5);
    check(batchOf({9}, 5), {1, 5, 19, 0, 7, 9});
    // Takes more scratch than the steps, which go on with it.
    if (session) {
      toy::Gather gather;
      gptc_status status = gather.run(api, session);
      life.note(status);
      life.right &= status != GPTC_OK || gather.isRight();
    }
    check(batchOf({9}, 5), {1, 5, 19, 0, 7, 9});
    api.close(session);
    api.close(model);
    session = nullptr;
    model = nullptr;
    return life;
  }
};

/// Whatever fails, once or for good: a status with the driver's words, or right
/// results; nothing is left behind.
TEST_F(Faults, EveryCall) {
  for (bool hosts : {false, true})
    for (bool sticky : {false, true})
      for (int32_t failure : {launchFailed, outOfMemory}) {
        if (hosts && !context)
          makeContext();
        lazy().calls = lazy().failAt = 0;
        Address logits = hosts ? allocate(rowBytes) : 0;
        Life whole = live(hosts, logits);
        ASSERT_EQ(whole.status, GPTC_OK) << whole.message;
        ASSERT_TRUE(whole.right);
        const int64_t calls = lazy().calls;
        ASSERT_GT(calls, 30);
        int64_t errors = 0;
        for (int64_t at = 1; at <= calls; ++at) {
          lazy().calls = 0;
          lazy().failAt = at;
          lazy().failure = failure;
          lazy().sticky = sticky;
          Life life = live(hosts, logits);
          lazy().failAt = 0;
          SCOPED_TRACE("call " + std::to_string(at) + ": " + life.message);
          EXPECT_TRUE(life.right);
          expectNothingLeft();
          EXPECT_EQ(current(), context);
          if (life.status == GPTC_OK)
            continue;
          ++errors;
          bool memory = failure == outOfMemory;
          if (life.status != GPTC_NO_DEVICE) {
            EXPECT_EQ(life.status, memory ? GPTC_NO_MEMORY : GPTC_DEVICE_ERROR);
            EXPECT_NE(life.message.find(memory ? "out of memory"
                                               : "unspecified launch failure"),
                      std::string::npos);
          }
          if (HasFailure())
            return;
        }
        EXPECT_GT(errors, calls / 2);
        if (hosts)
          release(logits);
      }
}

} // namespace
