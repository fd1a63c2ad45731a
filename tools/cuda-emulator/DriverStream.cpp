// Driver calls: streams and events. What a stream is given runs at once, so
// there is never anything to wait for; missing waits are not found.
#include "Driver.h"

using namespace emu;

namespace emu {

bool isStream(void *stream) {
  uintptr_t value = reinterpret_cast<uintptr_t>(stream);
  return value <= 2 || state().streams.find(stream); // null, legacy, thread
}

static int onStream(void *stream) {
  return driverCall(Needs::Context, [&](State &) {
    return isStream(stream) ? Success : InvalidHandle;
  });
}

} // namespace emu

EMU_API cuStreamCreate(void **stream, unsigned flags) {
  return driverCall(Needs::Context, [&](State &s) {
    if (!stream || flags > 1)
      return InvalidValue;
    auto made = std::make_unique<Stream>();
    made->flags = flags;
    *stream = s.streams.add(std::move(made));
    return Success;
  });
}
EMU_API cuStreamCreateWithPriority(void **stream, unsigned flags, int) {
  return cuStreamCreate(stream, flags);
}
EMU_API cuStreamDestroy_v2(void *stream) {
  return driverCall(Needs::Context, [&](State &s) {
    return s.streams.remove(stream) ? Success : InvalidHandle;
  });
}
EMU_API cuStreamSynchronize(void *stream) { return onStream(stream); }
EMU_API cuStreamQuery(void *stream) { return onStream(stream); }
EMU_API cuStreamGetFlags(void *stream, unsigned *flags) {
  return driverCall(Needs::Context, [&](State &s) {
    if (!flags || !isStream(stream))
      return flags ? InvalidHandle : InvalidValue;
    Stream *made = s.streams.find(stream);
    *flags = made ? made->flags : 0;
    return Success;
  });
}
EMU_API cuStreamWaitEvent(void *stream, void *event, unsigned) {
  return driverCall(Needs::Context, [&](State &s) {
    return isStream(stream) && s.events.find(event) ? Success : InvalidHandle;
  });
}
EMU_API cuStreamBeginCapture_v2(void *stream, int) {
  int result = onStream(stream);
  return result == Success ? NotSupported : result;
}
EMU_API cuStreamEndCapture(void *, void **) { return NotSupported; }
EMU_API cuStreamIsCapturing(void *stream, int *status) {
  if (!status)
    return InvalidValue;
  *status = 0;
  return onStream(stream);
}
EMU_API cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  if (least)
    *least = 0;
  if (greatest)
    *greatest = 0;
  return Success;
}

EMU_API cuEventCreate(void **event, unsigned) {
  return driverCall(Needs::Context, [&](State &s) {
    if (!event)
      return InvalidValue;
    *event = s.events.add(std::make_unique<Event>());
    return Success;
  });
}
EMU_API cuEventDestroy_v2(void *event) {
  return driverCall(Needs::Context, [&](State &s) {
    return s.events.remove(event) ? Success : InvalidHandle;
  });
}
EMU_API cuEventRecord(void *event, void *stream) {
  return driverCall(Needs::Context, [&](State &s) {
    Event *made = s.events.find(event);
    if (!made || !isStream(stream))
      return InvalidHandle;
    made->recorded = true;
    made->when = std::chrono::steady_clock::now();
    return Success;
  });
}
EMU_API cuEventSynchronize(void *event) {
  return driverCall(Needs::Context, [&](State &s) {
    return s.events.find(event) ? Success : InvalidHandle;
  });
}
EMU_API cuEventQuery(void *event) { return cuEventSynchronize(event); }
EMU_API cuEventElapsedTime(float *milliseconds, void *from, void *to) {
  return driverCall(Needs::Context, [&](State &s) {
    Event *first = s.events.find(from), *second = s.events.find(to);
    if (!milliseconds)
      return InvalidValue;
    if (!first || !second || !first->recorded || !second->recorded)
      return InvalidHandle;
    *milliseconds =
        std::chrono::duration<float, std::milli>(second->when - first->when)
            .count();
    return Success;
  });
}
EMU_API cuEventElapsedTime_v2(float *milliseconds, void *from, void *to) {
  return cuEventElapsedTime(milliseconds, from, to);
}
