//===- Generation.h - Prompt in, tokens out -------------------------------===//
//
// Feeds a prompt to sequence 0 in pieces of at most the session's tokens, then
// one token at a time. What it computes does not depend on the pieces.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_RUNTIME_HOST_GENERATION_H
#define GPTC_RUNTIME_HOST_GENERATION_H

#include "gptc/Runtime/gptc.h"
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gptc::host {

/// The most tokens of one step: enough to keep the matrix units busy, while
/// the workspace stays small.
inline constexpr int64_t stepTokens = 512;

/// Sizes of the pieces of a prompt of `total` tokens: those of `split`, then
/// the rest, each cut to `most`. Empty with a message if `split` has more.
std::optional<std::vector<int64_t>> promptPieces(int64_t total, int64_t most,
                                                 std::span<const int32_t> split,
                                                 std::string &error);

class Generation {
public:
  /// Receives logits rows [count, vocab] in the order of the positions.
  using RowSink =
      std::function<bool(std::span<const float> rows, std::string &error)>;

  Generation(const gptc_api &api, gptc_session *session)
      : api(api), session(session), vocab(api.info()->vocab) {}

  /// One step of consecutive tokens. With `every` the logits of all of them
  /// are kept, otherwise the last one's.
  bool step(std::span<const int32_t> tokens, bool every, std::string &error);
  /// The whole prompt; `sink`, if any, gets every position's logits.
  bool prompt(std::span<const int32_t> tokens, std::span<const int64_t> pieces,
              const RowSink &sink, std::string &error);

  /// Logits of the last token fed, [vocab].
  std::span<const float> lastLogits() const {
    return std::span(logits).last(static_cast<size_t>(vocab));
  }
  int64_t length() const { return position; }

private:
  const gptc_api &api;
  gptc_session *session;
  int64_t vocab;
  int64_t position = 0;
  std::vector<int32_t> positions, rows;
  std::vector<float> logits;
};

} // namespace gptc::host

#endif // GPTC_RUNTIME_HOST_GENERATION_H
