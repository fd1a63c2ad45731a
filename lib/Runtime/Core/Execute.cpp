//===- Execute.cpp - Runs the calls of an entry ---------------------------===//
//
// A straight line of kernels. Each is cut over all threads, or launched on the
// GPU, and ends before the next begins. Nothing is allocated here.
//
//===----------------------------------------------------------------------===//

#include "Device.h"
#include <time.h>

namespace gptc::core {

namespace {
struct Job {
  gptc_kernel_fn fn;
  void *const *args;
  const int64_t *dims;
  char *scratch;
  uint64_t scratchStride;
  int64_t threads;
};
} // namespace

static void runPart(void *data, int32_t part) {
  const Job &job = *static_cast<const Job *>(data);
  FloatMode mode;
  job.fn(job.args, job.dims, job.scratch + part * job.scratchStride, part,
         job.threads);
}

static int64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/// Volatile, or the product could be computed outside of the mode.
template <typename T> static double seconds(T count, double unit) {
  FloatMode mode;
  volatile double time = static_cast<double>(count);
  time = time * unit;
  return time;
}

static void *resolve(const Session &session, const Frame &frame,
                     const gptc_arg &arg) {
  switch (arg.kind) {
  case GPTC_ARG_INPUT:
    return frame.inputs[arg.index];
  case GPTC_ARG_OUTPUT:
    return frame.outputs[arg.index];
  case GPTC_ARG_BUFFER:
    return static_cast<char *>(frame.workspace->memory.pointer) +
           frame.workspace->slots[frame.entry->buffers[arg.index].slot];
  case GPTC_ARG_WEIGHT:
    return const_cast<char *>(session.model->image) +
           programOf(*session.model).weights[arg.index].offset;
  default:
    return forKernels(session, session.views) + arg.index;
  }
}

bool bindCall(Session &session, const Frame &frame, const gptc_call_desc &call,
              int64_t *dims) {
  const gptc_entry_desc &entry = *frame.entry;
  for (int32_t d = 0; d < call.dim_count; ++d) {
    dims[d] = frame.dims[call.dims[d]];
    if (call.dims[d] == entry.dim_rows && dims[d] == 0)
      return false;
  }
  for (int32_t a = 0; a < call.arg_count; ++a)
    session.args[a] = resolve(session, frame, call.args[a]);
  return true;
}

/// gptc_event::read.
static int readArgument(void *memory, const void *from, void *to,
                        size_t bytes) {
  Queue &queue = static_cast<Session *>(memory)->queue;
  copyOut(queue, to, from, bytes);
  return finish(queue, true) != GPTC_OK;
}

void runOnThreads(Session &session, void (*body)(void *, int32_t), void *data) {
  const gptc_host &host = session.model->host;
  const int32_t threads = session.limits.threads;
  if (session.pool) {
    runParts(session.pool, body, data);
  } else if (host.parallel && threads > 1) {
    host.parallel(host.user, threads, body, data);
  } else {
    for (int32_t i = 0; i < threads; ++i)
      body(data, i);
  }
}

void execute(Session &session, const Frame &frame) {
  const gptc_entry_desc &entry = *frame.entry;
  for (int32_t i = 0; i < entry.call_count; ++i) {
    const gptc_call_desc &call = entry.calls[i];
    int64_t dims[maxCallDims];
    if (!bindCall(session, frame, call, dims))
      continue;
    Job job = {call.fn,
               session.args,
               dims,
               static_cast<char *>(session.scratch.pointer),
               session.scratchStride,
               session.limits.threads};
    if (!session.observer) {
      if (onDevice())
        launch(session, call, dims);
      else
        runOnThreads(session, runPart, &job);
      continue;
    }
    double time;
    if (onDevice()) {
      time = seconds(launchTimed(session, call, dims), 1e-3);
    } else {
      int64_t begin = now();
      runOnThreads(session, runPart, &job);
      time = seconds(now() - begin, 1e-9);
    }
    gptc_event event = {
        call.name,      entry.name,     i,
        session.args,   call.arg_count, dims,
        call.dim_count, time,           onDevice() ? readArgument : nullptr,
        &session};
    session.observer(session.observerUser, &event);
  }
}

} // namespace gptc::core
