//===- PreTokenizer.cpp - Cutting text into pieces before merging ---------===//
//
// Patterns: GPT-2's encoder.py, Llama 3's tokenizer.py and Qwen2's
// tokenizer.json, with two changes
// that keep their meaning under PCRE2. `\s` is spelled out as Unicode's
// White_Space, because PCRE2's own also holds U+180E; and runs that can be
// taken whole are possessive, so that no match backtracks over them.
//
// Matching uses pcre2_match (not recursive since PCRE2 10.30) with validity
// checked here once: PCRE2 would check the rest of the text at every piece.
//
//===----------------------------------------------------------------------===//
#define PCRE2_CODE_UNIT_WIDTH 8
#include "PreTokenizer.h"
#include "Utf8.h"
#include <fmt/format.h>
#include <pcre2.h>

namespace gptc::text {

#define WHITE_SPACE                                                            \
  "\\x{09}-\\x{0D}\\x{20}\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}"  \
  "\\x{2029}\\x{202F}\\x{205F}\\x{3000}"
#define SYMBOLS "[^" WHITE_SPACE "\\p{L}\\p{N}]++"
// A run of spaces leaves its last one to a word that follows.
#define SPACES "[" WHITE_SPACE "]+(?![^" WHITE_SPACE "])|[" WHITE_SPACE "]++"

static constexpr std::string_view gpt2Pattern =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}++| ?\\p{N}++| ?" SYMBOLS "|" SPACES;

#define LLAMA3_WITH(NUMBERS)                                                   \
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}++|" NUMBERS       \
  "| ?" SYMBOLS "[\\r\\n]*+|[" WHITE_SPACE "]*[\\r\\n]++|" SPACES
static constexpr std::string_view llama3Pattern = LLAMA3_WITH("\\p{N}{1,3}+");
static constexpr std::string_view qwen2Pattern = LLAMA3_WITH("\\p{N}");

static constexpr std::string_view digitsPattern = "\\p{N}|\\P{N}++";

#undef LLAMA3_WITH
#undef SPACES
#undef SYMBOLS
#undef WHITE_SPACE

namespace {
struct Free {
  void operator()(pcre2_code *p) const { pcre2_code_free(p); }
  void operator()(pcre2_match_data *p) const { pcre2_match_data_free(p); }
  void operator()(pcre2_match_context *p) const { pcre2_match_context_free(p); }
};
template <typename T> using Owned = std::unique_ptr<T, Free>;

/// What one matching of a pattern needs besides the pattern.
struct MatchState {
  Owned<pcre2_match_data> data{pcre2_match_data_create(1, nullptr)};
  Owned<pcre2_match_context> context{pcre2_match_context_create(nullptr)};

  /// False when out of memory.
  bool prepare() {
    if (!data || !context)
      return false;
    // The work is linear in the text; the limits meant for hostile patterns
    // would only refuse long runs of spaces.
    pcre2_set_match_limit(context.get(), UINT32_MAX);
    return true;
  }
};
} // namespace

static std::string pcre2Message(int code) {
  PCRE2_UCHAR text[160] = {};
  pcre2_get_error_message(code, text, sizeof(text));
  return reinterpret_cast<const char *>(text);
}

struct PreTokenizer::Pattern {
  Owned<pcre2_code> code;

  static std::shared_ptr<const Pattern> compile(std::string_view text,
                                                std::string &error) {
    int status = 0;
    PCRE2_SIZE where = 0;
    auto pattern = std::make_shared<Pattern>();
    pattern->code.reset(pcre2_compile(
        reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
        PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &status, &where, nullptr));
    if (!pattern->code) {
      error = fmt::format("pre-tokenizer pattern at {}: {} (PCRE2 with Unicode "
                          "support is needed)",
                          where, pcre2Message(status));
      return nullptr;
    }
    return pattern;
  }

  /// Calls `match` with offset and length of each match, one after another
  /// over all of `text`, which is valid UTF-8. Nothing but the state is
  /// changed, and a state serves one call at a time.
  template <typename Callback>
  bool forEach(std::string_view text, const MatchState &state, Callback match,
               std::string &error) const {
    size_t at = 0;
    while (at < text.size()) {
      int status =
          pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()),
                      text.size(), at, PCRE2_NO_UTF_CHECK | PCRE2_ANCHORED,
                      state.data.get(), state.context.get());
      size_t end =
          status > 0 ? pcre2_get_ovector_pointer(state.data.get())[1] : 0;
      if (end <= at) {
        error = fmt::format("pre-tokenizer at byte {}: {}", at,
                            pcre2Message(status));
        return false;
      }
      if (!match(at, end - at))
        return false;
      at = end;
    }
    return true;
  }
};

std::optional<PreTokenizer> PreTokenizer::create(std::string_view name,
                                                 std::string &error) {
  PreTokenizer result;
  std::string_view pattern = name == "llama3"  ? llama3Pattern
                             : name == "qwen2" ? qwen2Pattern
                             : name == "gpt2" || name == "smollm"
                                 ? gpt2Pattern
                                 : std::string_view();
  if (pattern.empty()) {
    error = fmt::format("pre-tokenizer '{}' is not supported", name);
    return std::nullopt;
  }
  result.pieces = Pattern::compile(pattern, error);
  if (!result.pieces)
    return std::nullopt;
  if (name == "smollm") {
    result.stretches = Pattern::compile(digitsPattern, error);
    if (!result.stretches)
      return std::nullopt;
  }
  return result;
}

/// `bytes` with every invalid byte replaced by '#', a symbol of one byte, so
/// that offsets are the same in both. Empty if all is valid.
static std::string withInvalidBytesReplaced(std::string_view bytes) {
  std::string replaced;
  for (size_t at = 0; at < bytes.size();) {
    size_t length = utf8Prefix(bytes.substr(at)).length;
    if (length == 0) {
      if (replaced.empty())
        replaced = bytes;
      replaced[at] = '#';
      length = 1;
    }
    at += length;
  }
  return replaced;
}

bool PreTokenizer::cut(std::string_view bytes,
                       const std::function<bool(std::string_view)> &piece,
                       std::string &error) const {
  std::string replaced = withInvalidBytesReplaced(bytes);
  std::string_view text = replaced.empty() ? bytes : replaced;
  MatchState stretchState, pieceState;
  if (!stretchState.prepare() || !pieceState.prepare()) {
    error = "pre-tokenizer: out of memory";
    return false;
  }
  auto cutStretch = [&](size_t start, size_t length) {
    return pieces->forEach(
        text.substr(start, length), pieceState,
        [&](size_t at, size_t n) { return piece(bytes.substr(start + at, n)); },
        error);
  };
  return stretches ? stretches->forEach(text, stretchState, cutStretch, error)
                   : cutStretch(0, text.size());
}

} // namespace gptc::text
