//===- ThreadsTest.cpp - The toy package on many threads ------------------===//
//
// 8 threads at once: first calls, own sessions of one model, a session that all
// want, models that go while their sessions are at work. An executable of its
// own, so that nothing of the core has run before the first calls. The preset
// tsan is to find nothing here (test/sanitize.sh).
//
//===----------------------------------------------------------------------===//

#include "ToyModel.h"
#include <atomic>
#include <functional>
#include <gtest/gtest.h>
#include <latch>
#include <string>
#include <thread>

namespace {

constexpr int threadCount = 8;

/// body(i) on 8 threads that begin together.
void onThreads(const std::function<void(int)> &body) {
  std::latch begin(threadCount);
  std::vector<std::thread> threads;
  for (int i = 0; i < threadCount; ++i)
    threads.emplace_back([&, i] {
      begin.arrive_and_wait();
      body(i);
    });
  for (std::thread &thread : threads)
    thread.join();
}

gptc_model *openModel() {
  toy::Weights weights;
  gptc_open_params params{sizeof(params), nullptr, weights.tensors, 3,
                          nullptr,        0};
  gptc_model *model = nullptr;
  EXPECT_EQ(gptc_core_api()->open(&params, &model), GPTC_OK)
      << gptc_core_api()->last_error();
  return model;
}

gptc_session *openSession(gptc_model *model, int32_t threads) {
  gptc_limits limits{sizeof(limits), 0, 2, 0, 0, threads};
  gptc_session *session = nullptr;
  EXPECT_EQ(gptc_core_api()->session(model, &limits, &session), GPTC_OK)
      << gptc_core_api()->last_error();
  return session;
}

/// One step of sequence 0 from position `first`; logits of the last token.
gptc_status step(gptc_session *session, const std::vector<int32_t> &ids,
                 size_t first, std::vector<float> &logits) {
  std::vector<int32_t> positions;
  for (size_t i = first; i < ids.size(); ++i)
    positions.push_back(int32_t(i));
  int32_t last = int32_t(positions.size()) - 1;
  gptc_batch batch{last + 1, ids.data() + first, positions.data(), nullptr, 1,
                   &last};
  logits.assign(toy::V, -1);
  return gptc_core_api()->step(session, &batch, logits.data());
}

/// A prompt, one of 8, and single tokens after it, again and again as the
/// context fills; `steps` calls, each compared with the formula.
void text(gptc_session *session, int prompt, int steps) {
  std::vector<int32_t> ids;
  std::vector<float> logits;
  for (int s = 0; s < steps; ++s) {
    size_t first = ids.size();
    if (first == 0 || first == toy::context) {
      first = 0;
      ids.clear();
      for (int i = 0; i < 3 + prompt; ++i)
        ids.push_back((prompt * 7 + i * i * 3 + s) % toy::V);
    } else {
      ids.push_back((prompt * 5 + s * 3) % toy::V);
    }
    ASSERT_EQ(step(session, ids, first, logits), GPTC_OK)
        << gptc_core_api()->last_error();
    ASSERT_EQ(logits, toy::reference(ids)) << "prompt " << prompt << ", " << s;
  }
}

TEST(Threads, FirstCalls) {
  onThreads([](int i) {
    const gptc_api *api = gptc_core_api();
    EXPECT_STREQ(api->info()->name, "toy");
    gptc_model *model = openModel();
    gptc_session *session = openSession(model, 1 + i % 3);
    text(session, i, 8);
    api->close(session);
    api->close(model);
  });
}

TEST(Threads, SessionsOfOneModel) {
  gptc_model *model = openModel();
  onThreads([&](int i) {
    gptc_session *session = openSession(model, 1 + i % 2);
    text(session, i, 200);
    gptc_core_api()->close(session);
  });
  gptc_core_api()->close(model);
}

TEST(Threads, ModelClosedBeforeItsSessions) {
  for (int round = 0; round < 20; ++round) {
    gptc_model *model = openModel();
    std::vector<gptc_session *> sessions;
    for (int i = 0; i < threadCount - 1; ++i)
      sessions.push_back(openSession(model, 1));
    onThreads([&](int i) {
      if (i == threadCount - 1)
        return gptc_core_api()->close(model);
      text(sessions[i], i, 3);
      gptc_core_api()->close(sessions[i]);
    });
  }
}

TEST(Threads, OneSessionForAll) {
  gptc_model *model = openModel();
  gptc_session *session = openSession(model, 2);
  std::atomic<int> refused = 0;
  onThreads([&](int i) {
    // Each its own prompt from position 0: no call depends on another.
    std::vector<int32_t> ids(size_t(3 + i), i);
    std::vector<float> expected = toy::reference(ids), logits;
    for (int done = 0; done < 50;) {
      gptc_status status = step(session, ids, 0, logits);
      if (status == GPTC_BUSY) {
        ++refused;
        ASSERT_NE(std::string(gptc_core_api()->last_error()).find("in use"),
                  std::string::npos);
        ASSERT_EQ(logits, std::vector<float>(toy::V, -1));
        std::this_thread::yield();
        continue;
      }
      ASSERT_EQ(status, GPTC_OK) << gptc_core_api()->last_error();
      ASSERT_EQ(logits, expected);
      ++done;
    }
  });
  RecordProperty("refused", refused);
  gptc_core_api()->close(session);
  gptc_core_api()->close(model);
}

TEST(Threads, MessagesAreOfTheirThread) {
  gptc_model *model = openModel();
  onThreads([&](int i) {
    gptc_session *session = openSession(model, 1);
    std::vector<float> logits;
    for (int round = 0; round < 50; ++round) {
      int32_t id = toy::V + i;
      ASSERT_EQ(step(session, {id}, 0, logits), GPTC_OUT_OF_RANGE);
      std::this_thread::yield();
      ASSERT_NE(std::string(gptc_core_api()->last_error())
                    .find("got " + std::to_string(id)),
                std::string::npos)
          << gptc_core_api()->last_error();
    }
    gptc_core_api()->close(session);
  });
  gptc_core_api()->close(model);
}

/// Workers that have gone to sleep between two kernels, and those that still
/// spin, of pools of every size.
TEST(Threads, SleepingAndSpinningWorkers) {
  gptc_model *model = openModel();
  onThreads([&](int i) {
    gptc_session *session = openSession(model, 1 + i);
    gptc_core_api()->observe(
        session,
        [](void *user, const gptc_event *event) {
          if ((*static_cast<int *>(user) + event->call) % 2)
            std::this_thread::sleep_for(std::chrono::microseconds(300));
        },
        &i);
    text(session, i, 20);
    gptc_core_api()->close(session);
  });
  gptc_core_api()->close(model);
}

} // namespace
