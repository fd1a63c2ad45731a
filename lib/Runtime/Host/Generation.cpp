//===- Generation.cpp - Prompt in, tokens out -----------------------------===//

#include "gptc/Runtime/Host/Generation.h"
#include <algorithm>
#include <fmt/format.h>
#include <numeric>

using namespace gptc::host;

std::optional<std::vector<int64_t>>
gptc::host::promptPieces(int64_t total, int64_t most,
                         std::span<const int32_t> split, std::string &error) {
  std::vector<int64_t> pieces;
  int64_t left = total;
  auto feed = [&](int64_t size) {
    left -= size;
    for (; size > 0; size -= std::min(size, most))
      pieces.push_back(std::min(size, most));
  };
  for (int32_t size : split) {
    if (size > left) {
      error = fmt::format(
          "expected pieces of at most {} tokens in all, got {}", total,
          std::accumulate(split.begin(), split.end(), int64_t(0)));
      return std::nullopt;
    }
    feed(size);
  }
  feed(left);
  return pieces;
}

bool Generation::step(std::span<const int32_t> tokens, bool every,
                      std::string &error) {
  auto count = static_cast<int64_t>(tokens.size());
  positions.resize(tokens.size());
  std::iota(positions.begin(), positions.end(), static_cast<int32_t>(position));
  rows.resize(every ? tokens.size() : 1);
  std::iota(rows.begin(), rows.end(),
            static_cast<int32_t>(every ? 0 : count - 1));
  logits.resize(rows.size() * static_cast<size_t>(vocab));

  gptc_batch batch{};
  batch.count = count;
  batch.tokens = tokens.data();
  batch.positions = positions.data();
  batch.row_count = static_cast<int64_t>(rows.size());
  batch.rows = rows.data();
  if (api.step(session, &batch, logits.data()) != GPTC_OK) {
    error = api.last_error();
    return false;
  }
  position += count;
  return true;
}

bool Generation::prompt(std::span<const int32_t> tokens,
                        std::span<const int64_t> pieces, const RowSink &sink,
                        std::string &error) {
  for (int64_t size : pieces) {
    auto count = static_cast<size_t>(size);
    if (!step(tokens.first(count), sink != nullptr, error))
      return false;
    if (sink && !sink(logits, error))
      return false;
    tokens = tokens.subspan(count);
  }
  return true;
}
