//===- Memory.h - where a kernel's arguments are ----------------*- C++ -*-===//
#ifndef GPTC_LIB_CHECK_MEMORY_H
#define GPTC_LIB_CHECK_MEMORY_H

#include "gptc/Runtime/gptc.h"
#include <cstring>

namespace gptc::check {

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

private:
  const gptc_event &event;
};

} // namespace gptc::check

#endif // GPTC_LIB_CHECK_MEMORY_H
