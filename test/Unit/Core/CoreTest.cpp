//===- CoreTest.cpp - Steps, forks and runs of the toy package ------------===//
//
// Compiled with the ragged step entry and with the one-sequence entry, each for
// the CPU and for a GPU.
//
//===----------------------------------------------------------------------===//

#include "CoreFixture.h"

using namespace core;

namespace {

std::vector<int32_t> firstN(const std::vector<int32_t> &ids, size_t n) {
  return {ids.begin(), ids.begin() + n};
}

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
  says("an id from 0 to 19, got 20");
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
