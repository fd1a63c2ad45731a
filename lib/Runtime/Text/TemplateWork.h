//===- TemplateWork.h - What a chat template may still do -----------------===//
//
// A unit is a byte of memory or a step of some ten nanoseconds. Everything that
// copies, searches or compares more than a fixed number of bytes or values
// takes a Work and spends before it does so: texts, lists and dicts cannot be
// copied or searched otherwise (TemplateText.h, TemplateValue.h). So neither
// time nor memory depends on anything but the limit. With the first error, of
// whatever kind, nothing is left.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_LIB_RUNTIME_TEXT_TEMPLATEWORK_H
#define GPTC_LIB_RUNTIME_TEXT_TEMPLATEWORK_H

#include <cstdint>
#include <fmt/format.h>
#include <string>

namespace gptc::text::chat {

class Work {
public:
  /// The first error is put into `error`, which must be empty.
  Work(uint64_t limit, std::string &error) : left(limit), error(error) {}

  /// False when there is not so much left.
  bool spend(uint64_t units) {
    if (units <= left && !failed()) {
      left -= units;
      return true;
    }
    fail(line, "the template does too much work for this conversation; give "
               "the whole prompt as text");
    return false;
  }
  void fail(unsigned line, std::string_view message) {
    if (failed())
      return;
    error = fmt::format("line {}: {}", line, message);
    left = 0;
  }
  bool failed() const { return !error.empty(); }

  unsigned line = 1; ///< of what is evaluated

private:
  uint64_t left;
  std::string &error;
};

} // namespace gptc::text::chat

#endif // GPTC_LIB_RUNTIME_TEXT_TEMPLATEWORK_H
