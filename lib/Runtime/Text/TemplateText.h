//===- TemplateText.h - Text that remembers where it comes from -----------===//
//
// Every byte of a rendered conversation is either the template's own or came in
// with the messages. Only the former may become control tokens, so each byte
// carries a mark through concatenation, cutting and trimming.
//
// What takes a Work spends before it copies, searches or compares; when there
// is not enough left, it does nothing.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_LIB_RUNTIME_TEXT_TEMPLATETEXT_H
#define GPTC_LIB_RUNTIME_TEXT_TEMPLATETEXT_H

#include "TemplateWork.h"
#include <string>
#include <string_view>
#include <vector>

namespace gptc::text::chat {

class Text {
public:
  static constexpr size_t npos = std::string::npos;

  Text() = default;
  Text(Work &work, std::string_view bytes, bool isOwn) {
    append(work, bytes, isOwn);
  }
  Text(Text &&) noexcept = default;
  Text &operator=(Text &&) noexcept = default;

  size_t size() const { return text.size(); }
  bool empty() const { return text.empty(); }
  /// For what looks at a few of them, or spends itself.
  std::string_view bytes() const { return text; }
  /// One for each byte: 1 the template's, 0 not.
  std::string_view own() const { return marks; }
  /// The bytes alone.
  std::string take() && { return std::move(text); }

  void append(Work &work, std::string_view bytes, bool isOwn);
  void append(Work &work, const Text &other) {
    append(work, other, 0, other.size());
  }
  /// `length` bytes of `other`, which lie in it.
  void append(Work &work, const Text &other, size_t from, size_t length);
  Text slice(Work &work, size_t from, size_t length) const;
  /// The part that `view`, of bytes(), is.
  Text slice(Work &work, std::string_view view) const;
  Text copy(Work &work) const { return slice(work, 0, size()); }

  /// Where `pattern`, which is not empty, next stands, or npos.
  size_t find(Work &work, const Text &pattern, size_t from = 0) const;
  bool startsWith(Work &work, const Text &other) const;
  bool endsWith(Work &work, const Text &other) const;
  bool equals(Work &work, const Text &other) const;
  /// Below, at or above 0 as this text is in order with `other`, by bytes.
  int compare(Work &work, const Text &other) const;

  /// Where each character starts, and the end.
  std::vector<size_t> characterStarts(Work &work) const;
  size_t characterCount(Work &work) const;

  /// Puts `change` of each byte in its place.
  template <typename Change> void transform(Work &work, Change change) {
    if (work.spend(size()))
      for (char &c : text)
        c = change(c);
  }

private:
  std::string text, marks;
};

} // namespace gptc::text::chat

#endif // GPTC_LIB_RUNTIME_TEXT_TEMPLATETEXT_H
