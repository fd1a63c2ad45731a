//===- UnigramModel.cpp - The likeliest cut of text into tokens -----------===//
#include "UnigramModel.h"
#include "Utf8.h"
#include <algorithm>

namespace gptc::text {

static std::vector<int32_t> normalIds(const TokenizerData &data) {
  std::vector<int32_t> ids;
  for (size_t id = 0; id < data.tokens.size(); ++id)
    if (data.kinds[id] == TokenKind::Normal)
      ids.push_back(int32_t(id));
  return ids;
}

UnigramModel::UnigramModel(const TokenizerData &data)
    : data(data), table(data.tokens, normalIds(data)),
      passedOver(double(*std::ranges::min_element(data.scores)) - 10) {}

bool UnigramModel::cut(
    std::string_view text,
    const std::function<bool(size_t, size_t, int32_t)> &part) const {
  struct Best {
    double score = 0;   ///< of the best cut that ends here
    uint32_t start = 0; ///< of its last token
    int32_t id = -1;    ///< its last token, -1: a character passed over
    bool reached = false;
  };
  std::vector<Best> best(text.size() + 1);
  best[0].reached = true;
  auto offer = [&](size_t start, size_t length, double score, int32_t id) {
    Best &end = best[start + length];
    double sum = best[start].score + score;
    if (!end.reached || sum > end.score)
      end = {sum, uint32_t(start), id, true};
  };
  for (size_t at = 0; at < text.size();) {
    size_t length = std::max<size_t>(utf8Prefix(text.substr(at)).length, 1);
    bool alone = false;
    table.forEachPrefix(text.substr(at), [&](size_t matched, int32_t id) {
      alone |= matched == length;
      offer(at, matched, data.scores[id], id);
    });
    if (!alone)
      offer(at, length, passedOver, -1);
    at += length;
  }
  std::vector<size_t> ends; // of the tokens, from the last one on
  for (size_t at = text.size(); at > 0; at = best[at].start)
    ends.push_back(at);
  for (auto end = ends.rbegin(); end != ends.rend();) {
    size_t from = best[*end].start, to = *end;
    int32_t id = best[*end].id;
    while (++end != ends.rend() && id == -1 && best[*end].id == -1)
      to = *end;
    if (!part(from, to, id))
      return false;
  }
  return true;
}

} // namespace gptc::text
