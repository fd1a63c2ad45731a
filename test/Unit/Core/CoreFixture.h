//===- CoreFixture.h - A session of the toy package -------------*- C++ -*-===//
#ifndef GPTC_TEST_UNIT_CORE_COREFIXTURE_H
#define GPTC_TEST_UNIT_CORE_COREFIXTURE_H

#include "ToyModel.h"
#include <gtest/gtest.h>
#include <string>

namespace core {

inline const gptc_api &api = *gptc_core_api();

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

inline const std::vector<int32_t> prompt = {1, 5, 19, 0, 7, 7, 2, 11, 3, 4, 18};

} // namespace core

#endif // GPTC_TEST_UNIT_CORE_COREFIXTURE_H
