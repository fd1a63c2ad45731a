//===- TemplateText.h - Text that remembers where it comes from -----------===//
//
// Every byte of a rendered conversation is either the template's own or came in
// with the messages. Only the former may become control tokens, so each byte
// carries a mark through concatenation, cutting and trimming.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_LIB_RUNTIME_TEXT_TEMPLATETEXT_H
#define GPTC_LIB_RUNTIME_TEXT_TEMPLATETEXT_H

#include <string>
#include <string_view>

namespace gptc::text::chat {

struct Text {
  std::string bytes;
  std::string own; ///< one for each byte: 1 the template's, 0 not

  Text() = default;
  Text(std::string_view bytes, bool isOwn)
      : bytes(bytes), own(bytes.size(), char(isOwn)) {}

  void append(const Text &other) {
    bytes += other.bytes;
    own += other.own;
  }
  Text slice(size_t from, size_t length) const {
    Text part;
    part.bytes = bytes.substr(from, length);
    part.own = own.substr(from, length);
    return part;
  }
  /// The part of `bytes` that `view` is a view of.
  Text slice(std::string_view view) const {
    return view.empty()
               ? Text()
               : slice(size_t(view.data() - bytes.data()), view.size());
  }
};

} // namespace gptc::text::chat

#endif // GPTC_LIB_RUNTIME_TEXT_TEMPLATETEXT_H
