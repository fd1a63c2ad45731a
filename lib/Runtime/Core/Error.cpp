//===- Error.cpp - The message of the last failure ------------------------===//
//
// One buffer per thread. Messages hold integers and strings only, which no
// locale changes; longer ones are cut.
//
//===----------------------------------------------------------------------===//

#include "Core.h"
#include <stdarg.h>
#include <stdio.h>

static thread_local char message[512];

gptc_status gptc::core::fail(gptc_status status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof(message), format, args);
  va_end(args);
  return status;
}

const char *gptc::core::lastError() { return message; }

const char *gptc::core::dtypeName(int32_t dtype) {
  static const char *const names[] = {"f32",  "f16",  "bf16", "q8_0",
                                      "q4_0", "q4_1", "i32"};
  return dtype >= 0 && dtype < 7 ? names[dtype] : "an unknown format";
}

void gptc::core::printShape(int32_t rank, const int64_t *shape, char *out,
                            size_t size, bool anyBelow0) {
  size_t at = snprintf(out, size, "[");
  for (int32_t i = 0; i < rank && i < 8 && at < size; ++i)
    at += anyBelow0 && shape[i] < 0
              ? snprintf(out + at, size - at, "%sany", i ? ", " : "")
              : snprintf(out + at, size - at, "%s%lld", i ? ", " : "",
                         static_cast<long long>(shape[i]));
  if (at < size)
    snprintf(out + at, size - at, "]");
}
