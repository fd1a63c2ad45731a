//===- CoreTest.cpp - Steps, forks and runs of the toy package ------------===//
//
// Compiled with the ragged step entry and with the one-sequence entry, each for
// the CPU and for a GPU.
//
//===----------------------------------------------------------------------===//

#include "ToyModel.h"
#include <cstring>
#include <gtest/gtest.h>
#include <string>
#include <thread>

namespace {

const gptc_api &api = *gptc_core_api();

class Core : public ::testing::Test {
protected:
  ~Core() override {
    api.close(session);
    api.close(model);
  }

  void open(gptc_limits limits = {}, const gptc_host *host = nullptr) {
    toy::Weights weights;
    gptc_open_params params{sizeof(params), nullptr, weights.tensors, 3,
                            host,           0};
    ASSERT_EQ(api.open(&params, &model), GPTC_OK) << api.last_error();
    limits.size = sizeof(limits);
    ASSERT_EQ(api.session(model, &limits, &session), GPTC_OK)
        << api.last_error();
  }

  /// Adds tokens of one sequence to the batch under construction.
  void add(int32_t sequence, int32_t position, std::vector<int32_t> ids,
           bool rows = true) {
    for (int32_t id : ids) {
      if (rows)
        this->rows.push_back(int32_t(tokens.size()));
      tokens.push_back(id);
      positions.push_back(position++);
      sequences.push_back(sequence);
    }
  }
  gptc_status step() {
    gptc_batch batch{int64_t(tokens.size()), tokens.data(),
                     positions.data(),       sequences.data(),
                     int64_t(rows.size()),   rows.data()};
    logits.assign(rows.size() * toy::V, -1);
    gptc_status status = api.step(session, &batch, logits.data());
    tokens.clear();
    positions.clear();
    sequences.clear();
    rows.clear();
    return status;
  }
  std::vector<float> row(size_t i) {
    return {logits.begin() + i * toy::V, logits.begin() + (i + 1) * toy::V};
  }
  /// Expects the message of the last failure to hold `text`.
  void says(const char *text) {
    EXPECT_NE(std::string(api.last_error()).find(text), std::string::npos)
        << api.last_error();
  }

  gptc_model *model = nullptr;
  gptc_session *session = nullptr;
  std::vector<int32_t> tokens, positions, sequences, rows;
  std::vector<float> logits;
};

std::vector<int32_t> firstN(const std::vector<int32_t> &ids, size_t n) {
  return {ids.begin(), ids.begin() + n};
}

const std::vector<int32_t> prompt = {1, 5, 19, 0, 7, 7, 2, 11, 3, 4, 18};

TEST_F(Core, EverySplitAndThreadCount) {
  for (int32_t threads : {1, 2, 5})
    for (size_t piece : {1, 3, 4, 11}) {
      gptc_limits limits{};
      limits.threads = threads;
      open(limits);
      for (size_t at = 0; at < prompt.size(); at += piece) {
        size_t n = std::min(piece, prompt.size() - at);
        add(0, int32_t(at), {prompt.begin() + at, prompt.begin() + at + n});
        ASSERT_EQ(step(), GPTC_OK) << api.last_error();
        for (size_t i = 0; i < n; ++i)
          ASSERT_EQ(row(i), toy::reference(firstN(prompt, at + i + 1)));
      }
      api.close(session);
      api.close(model);
      session = nullptr;
      model = nullptr;
    }
}

TEST_F(Core, RaggedBatchWithRowsInAnyOrder) {
  gptc_limits limits{};
  limits.sequences = 3;
  limits.threads = 2;
  open(limits);
  add(2, 0, {4, 4});
  add(0, 0, {1, 2, 3, 4, 5, 6}, false);
  ASSERT_EQ(step(), GPTC_OK) << api.last_error();
  add(0, 6, {9}, false);
  add(1, 0, {8, 8, 8}, false);
  add(2, 2, {5, 6}, false);
  rows = {5, 0, 3, 4, 0};
  ASSERT_EQ(step(), GPTC_OK) << api.last_error();
  EXPECT_EQ(row(0), toy::reference({4, 4, 5, 6}));
  EXPECT_EQ(row(1), toy::reference({1, 2, 3, 4, 5, 6, 9}));
  EXPECT_EQ(row(2), toy::reference({8, 8, 8}));
  EXPECT_EQ(row(3), toy::reference({4, 4, 5}));
  EXPECT_EQ(row(4), row(1));
}

TEST_F(Core, TruncatesAndRollsBack) {
  open();
  add(0, 0, prompt);
  ASSERT_EQ(step(), GPTC_OK);
  add(0, 6, {9, 10});
  ASSERT_EQ(step(), GPTC_OK) << api.last_error();
  EXPECT_EQ(row(1), toy::reference({1, 5, 19, 0, 7, 7, 9, 10}));
  add(0, 0, {3});
  ASSERT_EQ(step(), GPTC_OK);
  EXPECT_EQ(row(0), toy::reference({3}));
}

TEST_F(Core, ErrorsLeaveTheStateAlone) {
  gptc_limits limits{};
  limits.tokens = 8;
  limits.rows = 4;
  limits.sequences = 2;
  open(limits);
  add(0, 0, {1, 2, 3}, false);
  ASSERT_EQ(step(), GPTC_OK);

  add(0, 3, {20});
  EXPECT_EQ(step(), GPTC_OUT_OF_RANGE);
  says("an id below 20, got 20");
  add(0, 3, {-1});
  EXPECT_EQ(step(), GPTC_OUT_OF_RANGE);
  add(0, 4, {1});
  EXPECT_EQ(step(), GPTC_OUT_OF_RANGE);
  says("at most 3, the length of sequence 0, got 4");
  add(0, 24, {1});
  EXPECT_EQ(step(), GPTC_OUT_OF_RANGE);
  says("context length 24");
  add(0, -1, {1});
  EXPECT_EQ(step(), GPTC_OUT_OF_RANGE);
  add(2, 0, {1});
  EXPECT_EQ(step(), GPTC_OUT_OF_RANGE);
  says("a sequence below 2");
  add(0, 0, {1, 2});
  positions[1] = 0;
  EXPECT_EQ(step(), GPTC_INVALID_ARGUMENT);
  says("the consecutive position 1, got 0");
  add(0, 0, {1});
  add(1, 0, {1});
  add(0, 1, {1});
  EXPECT_EQ(step(), GPTC_INVALID_ARGUMENT);
  says("side by side");
  add(0, 0, {1});
  rows = {1};
  EXPECT_EQ(step(), GPTC_OUT_OF_RANGE);
  says("row 0");
  add(0, 0, {1, 1, 1, 1, 1, 1, 1, 1, 1}, false);
  EXPECT_EQ(step(), GPTC_LIMIT);
  says("at most 8 tokens");
  add(0, 0, {1, 1, 1, 1, 1});
  EXPECT_EQ(step(), GPTC_LIMIT);
  says("at most 4 rows");
  // The last error of a batch is found before its first token counts.
  add(0, 0, {9, 9, 99});
  EXPECT_EQ(step(), GPTC_OUT_OF_RANGE);

  add(0, 3, {4});
  ASSERT_EQ(step(), GPTC_OK) << api.last_error();
  EXPECT_EQ(row(0), toy::reference({1, 2, 3, 4}));
  EXPECT_EQ(step(), GPTC_OK) << "an empty batch";
}

TEST_F(Core, PagesRunOutAndAreTakenBack) {
  gptc_limits limits{};
  limits.sequences = 3;
  limits.pages = 4;
  open(limits);
  add(0, 0, {1, 2, 3, 4, 5});
  add(1, 0, {6, 7, 8});
  ASSERT_EQ(step(), GPTC_OK) << api.last_error(); // 3 of 4 pages
  add(0, 4, {9, 9, 9, 9, 9});                     // needs one, frees one first
  add(1, 0, {1});
  add(2, 0, {1});
  EXPECT_EQ(step(), GPTC_LIMIT);
  says("KV pages");
  // The refused batch had begun to truncate both.
  add(0, 5, {6});
  add(1, 3, {9});
  ASSERT_EQ(step(), GPTC_OK) << api.last_error();
  EXPECT_EQ(row(0), toy::reference({1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(row(1), toy::reference({6, 7, 8, 9}));
  // A batch may use the pages that it gives up itself.
  add(0, 0, {1});
  add(1, 0, {2});
  add(2, 0, {3, 4, 5, 6, 7});
  ASSERT_EQ(step(), GPTC_OK) << api.last_error();
  EXPECT_EQ(row(6), toy::reference({3, 4, 5, 6, 7}));
}

TEST_F(Core, ForksShareAndSplit) {
  gptc_limits limits{};
  limits.sequences = 3;
  limits.pages = 6;
  open(limits);
  add(0, 0, {1, 2, 3, 4, 5, 6}, false);
  ASSERT_EQ(step(), GPTC_OK);
  ASSERT_EQ(api.fork(session, 0, 1, 6), GPTC_OK) << api.last_error();
  ASSERT_EQ(api.fork(session, 0, 2, 5), GPTC_OK);
  // All three write into the page they share; two of them need a copy.
  add(0, 6, {7});
  add(1, 6, {8});
  add(2, 5, {9});
  ASSERT_EQ(step(), GPTC_OK) << api.last_error();
  EXPECT_EQ(row(0), toy::reference({1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(row(1), toy::reference({1, 2, 3, 4, 5, 6, 8}));
  EXPECT_EQ(row(2), toy::reference({1, 2, 3, 4, 5, 9}));
  add(0, 7, {7});
  add(1, 7, {7});
  ASSERT_EQ(step(), GPTC_OK);
  EXPECT_EQ(row(1), toy::reference({1, 2, 3, 4, 5, 6, 8, 7}));

  EXPECT_EQ(api.fork(session, 0, 3, 1), GPTC_OUT_OF_RANGE);
  EXPECT_EQ(api.fork(session, 0, 1, 9), GPTC_OUT_OF_RANGE);
  ASSERT_EQ(api.fork(session, 1, 1, 2), GPTC_OK) << "truncates itself";
  ASSERT_EQ(api.fork(session, 2, 0, 0), GPTC_OK) << "empties sequence 0";
  add(1, 2, {3});
  add(0, 0, {4});
  ASSERT_EQ(step(), GPTC_OK) << api.last_error();
  EXPECT_EQ(row(0), toy::reference({1, 2, 3}));
  EXPECT_EQ(row(1), toy::reference({4}));
}

TEST_F(Core, FillsTheContext) {
  open();
  std::vector<int32_t> ids(toy::context, 3);
  add(0, 0, ids);
  ASSERT_EQ(step(), GPTC_OK) << api.last_error();
  EXPECT_EQ(row(toy::context - 1), toy::reference(ids));
  add(0, toy::context, {3});
  EXPECT_EQ(step(), GPTC_OUT_OF_RANGE);
}

TEST_F(Core, RunsNamedTensors) {
  open();
  for (int64_t n : {3, 300, 2}) {
    std::vector<float> x(n * toy::D, 2), y(n * toy::D);
    std::vector<int32_t> index(n, 4);
    index[1] = 19;
    gptc_tensor inputs[] = {{"index", GPTC_I32, 1, {n}, index.data(), 0},
                            {"x", GPTC_F32, 2, {n, toy::D}, x.data(), 0}};
    gptc_tensor output{"y", GPTC_F32, 0, {}, nullptr, 0};
    ASSERT_EQ(api.run(session, "gather", inputs, 2, &output, 1), GPTC_OK)
        << api.last_error();
    EXPECT_EQ(output.rank, 2);
    EXPECT_EQ(output.shape[0], n);
    output.data = y.data();
    output.capacity_bytes = y.size() * 4;
    ASSERT_EQ(api.run(session, "gather", inputs, 2, &output, 1), GPTC_OK)
        << api.last_error();
    for (int64_t d = 0; d < toy::D; ++d) {
      EXPECT_EQ(y[d], 2 + toy::tableAt(4, d));
      EXPECT_EQ(y[toy::D + d], 2 + toy::tableAt(19, d));
    }
    output.capacity_bytes = y.size() * 4 - 1;
    EXPECT_EQ(api.run(session, "gather", inputs, 2, &output, 1),
              GPTC_INVALID_ARGUMENT);
    says("expected room for");
    inputs[1].shape[0] = n + 1;
    EXPECT_EQ(api.run(session, "gather", inputs, 2, &output, 1),
              GPTC_INVALID_ARGUMENT);
    says("expected shape");
    index[0] = 20;
    EXPECT_EQ(api.run(session, "gather", inputs, 1, nullptr, 0),
              GPTC_INVALID_ARGUMENT);
    says("input 'x' is missing");
    inputs[1].shape[0] = n;
    EXPECT_EQ(api.run(session, "gather", inputs, 2, &output, 1),
              GPTC_OUT_OF_RANGE);
    says("below 20, got 20");
    inputs[1].name = "z";
    EXPECT_EQ(api.run(session, "gather", inputs, 2, &output, 1),
              GPTC_INVALID_ARGUMENT);
    says("no input 'z'");
  }
  EXPECT_EQ(api.run(session, "nothing", nullptr, 0, nullptr, 0),
            GPTC_INVALID_ARGUMENT);
  EXPECT_EQ(api.run(session, "step", nullptr, 0, nullptr, 0),
            GPTC_INVALID_ARGUMENT);
}

TEST_F(Core, ObservesEveryKernel) {
  open();
  std::vector<std::string> seen;
  ASSERT_EQ(api.observe(
                session,
                [](void *user, const gptc_event *event) {
                  EXPECT_GE(event->seconds, 0);
                  EXPECT_STREQ(event->entry, "step");
                  EXPECT_EQ(event->dims[0], event->call == 2 ? 1 : 2);
                  static_cast<std::vector<std::string> *>(user)->push_back(
                      event->kernel);
                },
                &seen),
            GPTC_OK);
  add(0, 0, {1, 2}, false);
  rows = {1};
  ASSERT_EQ(step(), GPTC_OK);
  EXPECT_EQ(seen, (std::vector<std::string>{"append", "attend", "head"}));
}

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
    float x[toy::D] = {}, y[toy::D];
    int32_t index = 4;
    gptc_tensor inputs[] = {{"index", GPTC_I32, 1, {1}, &index, 0},
                            {"x", GPTC_F32, 2, {1, toy::D}, x, 0}};
    gptc_tensor output{"y", GPTC_F32, 0, {}, y, sizeof(y)};
    left = blocks;
    gptc_status status = api.run(session, "gather", inputs, 2, &output, 1);
    left = INT64_MAX;
    add(0, 0, prompt);
    ASSERT_EQ(step(), GPTC_OK) << api.last_error();
    EXPECT_EQ(row(10), toy::reference(prompt));
    if (status == GPTC_OK) {
      EXPECT_EQ(y[0], toy::tableAt(4, 0));
      EXPECT_GT(blocks, 0);
      return;
    }
    EXPECT_EQ(status, GPTC_NO_MEMORY);
  }
}

TEST_F(Core, Limits) {
  open();
  gptc_session *other = nullptr;
  gptc_limits limits{sizeof(limits), -1, 0, 0, 0, 0};
  EXPECT_EQ(api.session(model, &limits, &other), GPTC_INVALID_ARGUMENT);
  limits = {sizeof(limits), 0, INT64_MAX, 0, 0, 0};
  EXPECT_EQ(api.session(model, &limits, &other), GPTC_LIMIT);
  limits = {sizeof(limits), INT32_MAX / 2, 1000000, 1000000000, 0, 1};
  EXPECT_EQ(api.session(model, &limits, &other), GPTC_NO_MEMORY);
  EXPECT_EQ(other, nullptr);
  EXPECT_EQ(api.session(nullptr, nullptr, &other), GPTC_INVALID_ARGUMENT);
  EXPECT_EQ(api.step(nullptr, nullptr, nullptr), GPTC_INVALID_ARGUMENT);
  api.close(nullptr);
}

} // namespace
