//===- TemplateText.cpp - Text that remembers where it comes from ---------===//
#include "TemplateText.h"
#include "Utf8.h"
#include <algorithm>
#include <cstring>

namespace gptc::text::chat {

/// Of comparing so many bytes.
static uint64_t comparison(size_t bytes) { return 1 + bytes / 16; }

void Text::append(Work &work, std::string_view bytes, bool isOwn) {
  if (!work.spend(1 + 2 * bytes.size()))
    return;
  text += bytes;
  marks.append(bytes.size(), char(isOwn));
}

void Text::append(Work &work, const Text &other, size_t from, size_t length) {
  if (!work.spend(1 + 2 * length))
    return;
  text.append(other.text, from, length);
  marks.append(other.marks, from, length);
}

Text Text::slice(Work &work, size_t from, size_t length) const {
  Text part;
  part.append(work, *this, from, length);
  return part;
}

Text Text::slice(Work &work, std::string_view view) const {
  return view.empty()
             ? Text()
             : slice(work, size_t(view.data() - text.data()), view.size());
}

/// Spends for each place at which the pattern's first byte stands: a hostile
/// pattern is compared at all of them.
size_t Text::find(Work &work, const Text &pattern, size_t from) const {
  size_t length = pattern.size();
  while (from + length <= size()) {
    const char *start = text.data() + from;
    size_t places = size() - length + 1 - from;
    const void *first = std::memchr(start, pattern.text[0], places);
    size_t passed =
        first ? size_t(static_cast<const char *>(first) - start) : places;
    if (!work.spend(passed / 16 + comparison(length)) || !first)
      return npos;
    if (std::memcmp(first, pattern.text.data(), length) == 0)
      return from + passed;
    from += passed + 1;
  }
  return npos;
}

bool Text::startsWith(Work &work, const Text &other) const {
  return work.spend(comparison(other.size())) && text.starts_with(other.text);
}

bool Text::endsWith(Work &work, const Text &other) const {
  return work.spend(comparison(other.size())) && text.ends_with(other.text);
}

bool Text::equals(Work &work, const Text &other) const {
  return size() == other.size() && work.spend(comparison(size())) &&
         text == other.text;
}

int Text::compare(Work &work, const Text &other) const {
  return work.spend(comparison(std::min(size(), other.size())))
             ? text.compare(other.text)
             : 0;
}

static size_t characterLength(std::string_view bytes) {
  return std::max<size_t>(utf8Prefix(bytes).length, 1);
}

std::vector<size_t> Text::characterStarts(Work &work) const {
  std::vector<size_t> starts;
  if (!work.spend(sizeof(size_t) * (size() + 1)))
    return {0};
  for (size_t at = 0; at < size(); at += characterLength(bytes().substr(at)))
    starts.push_back(at);
  starts.push_back(size());
  return starts;
}

size_t Text::characterCount(Work &work) const {
  size_t count = 0;
  if (work.spend(size()))
    for (size_t at = 0; at < size(); at += characterLength(bytes().substr(at)))
      ++count;
  return count;
}

} // namespace gptc::text::chat
