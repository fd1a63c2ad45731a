//===- Unicode.cpp - White space and normal form C ------------------------===//
#include "Unicode.h"
#include "Utf8.h"
#include <algorithm>
#include <iterator>
#include <vector>

namespace gptc::text {

bool isWhiteSpace(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool isPythonSpace(uint32_t c) {
  return isWhiteSpace(c) || (c >= 0x1C && c <= 0x1F);
}

std::string_view trimLeft(std::string_view text, bool (*drop)(uint32_t)) {
  while (!text.empty()) {
    Utf8Prefix prefix = utf8Prefix(text);
    if (prefix.length == 0 || !drop(prefix.codePoint))
      break;
    text.remove_prefix(prefix.length);
  }
  return text;
}

std::string_view trimRight(std::string_view text, bool (*drop)(uint32_t)) {
  while (!text.empty()) {
    // The last character starts at most 4 bytes before the end.
    size_t length = 1;
    while (length < 4 && length < text.size() &&
           (uint8_t(text[text.size() - length]) & 0xC0) == 0x80)
      ++length;
    Utf8Prefix prefix = utf8Prefix(text.substr(text.size() - length));
    if (prefix.length != length || !drop(prefix.codePoint))
      break;
    text.remove_suffix(length);
  }
  return text;
}

void appendUtf8(std::string &text, uint32_t c) {
  if (c < 0x80) {
    text += char(c);
  } else if (c < 0x800) {
    text += char(0xC0 | c >> 6);
    text += char(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    text += char(0xE0 | c >> 12);
    text += char(0x80 | (c >> 6 & 0x3F));
    text += char(0x80 | (c & 0x3F));
  } else {
    text += char(0xF0 | c >> 18);
    text += char(0x80 | (c >> 12 & 0x3F));
    text += char(0x80 | (c >> 6 & 0x3F));
    text += char(0x80 | (c & 0x3F));
  }
}

//===----------------------------------------------------------------------===//
// Normal form C
//===----------------------------------------------------------------------===//

namespace {
struct ClassRange {
  uint32_t first, last;
  uint8_t combiningClass;
};
/// A canonical decomposition; `second` is 0 for singletons. A pair is composed
/// again unless it is excluded from that.
struct Decomposition {
  uint32_t composed, first, second;
  bool composes;
};
} // namespace

#include "NfcTables.inc"

// Hangul syllables are made by arithmetic (Unicode 14, section 3.12).
static constexpr uint32_t hangulBase = 0xAC00, leadBase = 0x1100,
                          vowelBase = 0x1161, tailBase = 0x11A7, leadCount = 19,
                          vowelCount = 21, tailCount = 28,
                          hangulCount = leadCount * vowelCount * tailCount;

static uint8_t combiningClass(uint32_t c) {
  if (c < 0x300)
    return 0;
  auto range = std::ranges::lower_bound(classRanges, c, {}, &ClassRange::last);
  return range != std::end(classRanges) && range->first <= c
             ? range->combiningClass
             : 0;
}

static const Decomposition *decompositionOf(uint32_t c) {
  auto found =
      std::ranges::lower_bound(decompositions, c, {}, &Decomposition::composed);
  return found != std::end(decompositions) && found->composed == c ? found
                                                                   : nullptr;
}

/// The character that the two make, or 0.
static uint32_t compose(uint32_t first, uint32_t second) {
  if (first - leadBase < leadCount && second - vowelBase < vowelCount)
    return hangulBase +
           ((first - leadBase) * vowelCount + second - vowelBase) * tailCount;
  if (first - hangulBase < hangulCount &&
      (first - hangulBase) % tailCount == 0 && second > tailBase &&
      second < tailBase + tailCount)
    return first + second - tailBase;
  // compositions: indices of decompositions, ordered by their two halves.
  auto key = [](uint16_t i) {
    return std::pair(decompositions[i].first, decompositions[i].second);
  };
  auto found =
      std::ranges::lower_bound(compositions, std::pair(first, second), {}, key);
  return found != std::end(compositions) &&
                 key(*found) == std::pair(first, second)
             ? decompositions[*found].composed
             : 0;
}

namespace {
struct Character {
  uint32_t code;
  uint8_t combiningClass;
  size_t place = 0; ///< keeps the order of marks of one class
};
} // namespace

/// Appends the full canonical decomposition of `c`. Decompositions are nested
/// at most four deep (checked by nfc_tables.py).
static void decompose(uint32_t c, std::vector<Character> &out) {
  if (c - hangulBase < hangulCount) {
    uint32_t index = c - hangulBase;
    out.push_back({leadBase + index / (vowelCount * tailCount), 0});
    out.push_back({vowelBase + index / tailCount % vowelCount, 0});
    if (index % tailCount)
      out.push_back({tailBase + index % tailCount, 0});
    return;
  }
  if (const Decomposition *found = decompositionOf(c)) {
    decompose(found->first, out);
    if (found->second)
      decompose(found->second, out);
    return;
  }
  out.push_back({c, combiningClass(c)});
}

/// Orders marks and composes, in place: one starter and what follows it at a
/// time.
static void composeAll(std::vector<Character> &text) {
  auto isStarter = [](const Character &c) { return c.combiningClass == 0; };
  for (auto at = text.begin(); at != text.end();) {
    auto marks = std::find_if_not(at, text.end(), isStarter);
    at = std::find_if(marks, text.end(), isStarter);
    for (auto mark = marks; mark != at; ++mark)
      mark->place = size_t(mark - marks);
    std::ranges::sort(marks, at, {}, [](const Character &c) {
      return std::pair(c.combiningClass, c.place);
    });
  }
  constexpr size_t none = SIZE_MAX;
  size_t kept = 0, starter = none;
  for (Character c : text) {
    // Blocked by what stands between: a mark of no lower class, or a starter.
    bool adjacent = starter != none && kept == starter + 1;
    uint8_t last = kept ? text[kept - 1].combiningClass : 0;
    if (starter != none && (adjacent || (last && last < c.combiningClass)))
      if (uint32_t made = compose(text[starter].code, c.code)) {
        text[starter].code = made;
        continue;
      }
    if (c.combiningClass == 0)
      starter = kept;
    text[kept++] = c;
  }
  text.resize(kept);
}

bool isCertainlyNfc(std::string_view text) {
  // Lead bytes from 0xCC on begin U+0300 and above.
  return std::ranges::all_of(text, [](char c) { return uint8_t(c) < 0xCC; });
}

std::string toNfc(std::string_view text) {
  std::string out;
  std::vector<Character> run; // of valid characters
  auto flush = [&] {
    composeAll(run);
    for (const Character &c : run)
      appendUtf8(out, c.code);
    run.clear();
  };
  while (!text.empty()) {
    Utf8Prefix prefix = utf8Prefix(text);
    if (prefix.length == 0) {
      flush();
      out += text[0];
      text.remove_prefix(1);
      continue;
    }
    decompose(prefix.codePoint, run);
    text.remove_prefix(prefix.length);
  }
  flush();
  return out;
}

} // namespace gptc::text
