//===- PreTokenizer.h - Cutting text into pieces before merging -----------===//
//
// The rules by name:
//   gpt2    GPT-2's pattern (contractions, letters, numbers, symbols, spaces)
//   smollm  each numeric character is a piece; what lies between is cut by
//           GPT-2's pattern, every stretch on its own
//   llama3  Llama 3's pattern (numbers by three, letters with one symbol)
//   qwen2   the same with each numeric character a piece
// Classes are those of the Unicode version that PCRE2 was built with (14 in
// 10.42); later characters count as symbols. The pieces cover the input without
// gaps.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_LIB_RUNTIME_TEXT_PRETOKENIZER_H
#define GPTC_LIB_RUNTIME_TEXT_PRETOKENIZER_H

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace gptc::text {

class PreTokenizer {
public:
  /// `name` as canonicalPreTokenizer() gives it.
  static std::optional<PreTokenizer> create(std::string_view name,
                                            std::string &error);

  /// Calls `piece` for each piece of `bytes` in order until it gives false
  /// (then the result is false too). False with a message if the pattern
  /// matcher fails, which takes running out of memory.
  bool cut(std::string_view bytes,
           const std::function<bool(std::string_view)> &piece,
           std::string &error) const;

private:
  struct Pattern;
  std::shared_ptr<const Pattern> stretches; ///< first cut, or null
  std::shared_ptr<const Pattern> pieces;
};

} // namespace gptc::text

#endif // GPTC_LIB_RUNTIME_TEXT_PRETOKENIZER_H
