//===- StandardStreams.h - what every tool's main does first ----*- C++ -*-===//
#pragma once
#include <fcntl.h>

namespace gptc {

/// A file must not get the number of a standard stream that is closed: what the
/// tool prints would land in it. Takes these numbers, for files that refuse
/// the direction of the stream, so that lost output stays an error.
inline void holdStandardStreams() {
  for (int stream = 0; stream <= 2; ++stream)
    if (::fcntl(stream, F_GETFD) < 0)
      (void)::open("/dev/null", stream == 0 ? O_WRONLY : O_RDONLY);
}

} // namespace gptc
