//===- Memory.h - where a kernel's arguments are ----------------*- C++ -*-===//
#ifndef GPTC_LIB_CHECK_MEMORY_H
#define GPTC_LIB_CHECK_MEMORY_H

#include "gptc/Runtime/gptc.h"
#include <cstring>
#include <optional>
#include <vector>

namespace gptc::check {

/// Elements of tensors and pages: f32, f16, bf16 or i32. Bytes of one, and the
/// one at `at`, which need not be aligned.
constexpr size_t bytesOf(gptc_dtype dtype) {
  return dtype == GPTC_F16 || dtype == GPTC_BF16 ? 2 : 4;
}
double numberAt(const void *at, gptc_dtype dtype);

/// Reads what an event's pointers point to: the host's memory, or a GPU's.
class Memory {
public:
  explicit Memory(const gptc_event &event) : event(event) {}

  /// Copies `bytes` bytes; false if the GPU's driver refuses, which the
  /// session's step then reports.
  bool read(void *to, const void *from, size_t bytes) const {
    if (event.read)
      return event.read(event.memory, from, to, bytes) == 0;
    std::memcpy(to, from, bytes);
    return true;
  }
  /// `count` elements that lie one after the other; nothing if the driver
  /// refuses.
  std::optional<std::vector<double>> numbers(const void *from, size_t count,
                                             gptc_dtype dtype) const;

private:
  const gptc_event &event;
};

} // namespace gptc::check

#endif // GPTC_LIB_CHECK_MEMORY_H
