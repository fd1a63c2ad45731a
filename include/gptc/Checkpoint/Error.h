//===- Error.h - Errors as values -------------------------------*- C++ -*-===//
//
// Nothing throws or aborts across the Checkpoint API: a function that can fail
// on its input returns Expected<T>. Messages are lower case, one line, and say
// where (file, tensor), which rule, expected and got, and what to do.
//
//===----------------------------------------------------------------------===//

#ifndef GPTC_CHECKPOINT_ERROR_H
#define GPTC_CHECKPOINT_ERROR_H

#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace gptc::checkpoint {

struct Error {
  std::string message;
};

/// A value or an Error. Test it before reading: `if (!result) return
/// result.error();`. Reading the side that is not there is a programming error.
template <typename T> class [[nodiscard]] Expected {
public:
  Expected(T value) : state(std::in_place_index<0>, std::move(value)) {}
  Expected(Error error) : state(std::in_place_index<1>, std::move(error)) {}

  explicit operator bool() const { return state.index() == 0; }
  T &operator*() { return *std::get_if<0>(&state); }
  const T &operator*() const { return *std::get_if<0>(&state); }
  T *operator->() { return std::get_if<0>(&state); }
  const T *operator->() const { return std::get_if<0>(&state); }
  const Error &error() const { return *std::get_if<1>(&state); }

private:
  std::variant<T, Error> state;
};

/// Success or an Error.
template <> class [[nodiscard]] Expected<void> {
public:
  Expected() = default;
  Expected(Error error) : failed(true), state(std::move(error)) {}

  explicit operator bool() const { return !failed; }
  const Error &error() const { return state; }

private:
  bool failed = false;
  Error state;
};

/// `text` in single quotes for a message: control bytes as \xNN, and cut after
/// 80 bytes, so that a name from a damaged file cannot flood a terminal.
std::string quote(std::string_view text);

/// Whether all of `text` is UTF-8, without surrogates and overlong forms.
bool isUtf8(std::string_view text);

} // namespace gptc::checkpoint

#endif // GPTC_CHECKPOINT_ERROR_H
