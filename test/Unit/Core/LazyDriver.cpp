//===- LazyDriver.cpp - A libcuda.so.1 that is late, counts and fails -----===//
//
// Between a package and the emulator's driver, for tests of the runtime:
//
// - Streams are as late as a GPU may be. What is queued runs when somebody
//   waits for the stream or for an event; a copy's source is read then. Whoever
//   reads a result, or writes to a source, without having waited is found. A
//   kernel, and new parameters of a graph's node, first let everything run that
//   is queued, since their parameters are the caller's.
// - What is made and given back is counted.
// - Any call can be made to fail, once or from there on, as those of a GPU do
//   after an error.
//
// Not for streams that are used by several threads at once.
//
//===----------------------------------------------------------------------===//

#include "LazyDriver.h"
#include <cstddef>
#include <deque>
#include <dlfcn.h>
#include <functional>
#include <map>
#include <string>

#define CALL extern "C" __attribute__((visibility("default"))) int

using Handle = void *;
using Address = uint64_t;

extern "C" __attribute__((visibility("default"))) LazyDriver lazyDriver{};

template <typename... A> static int pass(const char *name, A... arguments) {
  // By its path: this library has its name.
  static void *emulator = dlopen(EMULATOR_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  void *found = emulator ? dlsym(emulator, name) : nullptr;
  return found ? reinterpret_cast<int (*)(A...)>(found)(arguments...) : 999;
}

/// Counts a call that may fail. Not 0: it is to fail.
static int refused() {
  LazyDriver &d = lazyDriver;
  ++d.calls;
  bool now = d.failAt && (d.sticky ? d.calls >= d.failAt : d.calls == d.failAt);
  return now ? d.failure : 0;
}
/// A call that cannot fail by itself: it is made in any case.
static int safe(int result) {
  LazyDriver &d = lazyDriver;
  bool broken = d.failAt && d.sticky && d.calls >= d.failAt;
  return result ? result : broken ? d.failure : 0;
}
/// Gives something back. That the driver is asked to is what counts.
template <typename... A>
static int giveBack(int64_t &count, const char *name, A... arguments) {
  --count;
  return safe(pass(name, arguments...));
}
/// Passes a call on that may fail.
template <typename... A> static int risk(const char *name, A... arguments) {
  int error = refused();
  return error ? error : pass(name, arguments...);
}
static int counted(int result, int64_t &count) {
  count += !result;
  return result;
}

//===----------------------------------------------------------------------===//
// Streams
//===----------------------------------------------------------------------===//

namespace {
struct Queue {
  std::deque<std::function<int()>> work;
  int64_t done = 0; ///< pieces that have run
  int64_t end() const { return done + static_cast<int64_t>(work.size()); }
};
/// Where an event was recorded.
struct Mark {
  Handle stream;
  int64_t end;
};
} // namespace
static std::map<Handle, Queue> queues;
static std::map<Handle, Mark> marks;
static std::map<Address, size_t> blocks;

/// Runs the first pieces of a stream's work, up to number `end`.
static int runUntil(Handle stream, int64_t end) {
  int error = 0;
  Queue &queue = queues[stream];
  while (queue.done < end && !queue.work.empty()) {
    auto work = std::move(queue.work.front());
    queue.work.pop_front();
    ++queue.done;
    int result = work();
    error = error ? error : result;
  }
  return error;
}
static int runAll() {
  int error = 0;
  for (auto &[stream, queue] : queues) {
    int result = runUntil(stream, queue.end());
    error = error ? error : result;
  }
  return error;
}
static int later(Handle stream, std::function<int()> work) {
  if (int error = refused())
    return error;
  if (!lazyDriver.lazy)
    return work();
  queues[stream].work.push_back(std::move(work));
  return 0;
}

CALL cuStreamCreate(Handle *stream, unsigned flags) {
  return counted(risk("cuStreamCreate", stream, flags), lazyDriver.streams);
}
CALL cuStreamDestroy_v2(Handle stream) {
  runUntil(stream, queues[stream].end());
  queues.erase(stream);
  return giveBack(lazyDriver.streams, "cuStreamDestroy_v2", stream);
}
CALL cuStreamSynchronize(Handle stream) {
  if (int error = refused())
    return error;
  int error = runUntil(stream, queues[stream].end());
  return error ? error : pass("cuStreamSynchronize", stream);
}
CALL cuStreamWaitEvent(Handle stream, Handle event, unsigned) {
  return later(stream, [=] {
    auto mark = marks.find(event);
    return mark == marks.end()
               ? 0
               : runUntil(mark->second.stream, mark->second.end);
  });
}
CALL cuEventCreate(Handle *event, unsigned flags) {
  return counted(risk("cuEventCreate", event, flags), lazyDriver.events);
}
CALL cuEventDestroy_v2(Handle event) {
  marks.erase(event);
  return giveBack(lazyDriver.events, "cuEventDestroy_v2", event);
}
CALL cuEventRecord(Handle event, Handle stream) {
  if (int error = refused())
    return error;
  marks[event] = {stream, queues[stream].end()};
  return pass("cuEventRecord", event, stream);
}
CALL cuEventSynchronize(Handle event) {
  if (int error = refused())
    return error;
  auto mark = marks.find(event);
  return mark == marks.end() ? 0
                             : runUntil(mark->second.stream, mark->second.end);
}

CALL cuEventElapsedTime(float *milliseconds, Handle from, Handle to) {
  return risk("cuEventElapsedTime", milliseconds, from, to);
}

CALL cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t bytes,
                          Handle stream) {
  return later(stream, [=] {
    return pass("cuMemcpyHtoDAsync_v2", to, from, bytes, stream);
  });
}
CALL cuMemcpyDtoHAsync_v2(void *to, Address from, size_t bytes, Handle stream) {
  return later(stream, [=] {
    return pass("cuMemcpyDtoHAsync_v2", to, from, bytes, stream);
  });
}
CALL cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes,
                          Handle stream) {
  return later(stream, [=] {
    return pass("cuMemcpyDtoDAsync_v2", to, from, bytes, stream);
  });
}
CALL cuMemsetD8Async(Address to, unsigned char value, size_t bytes,
                     Handle stream) {
  return later(stream, [=] {
    return pass("cuMemsetD8Async", to, value, bytes, stream);
  });
}
CALL cuGraphLaunch(Handle executable, Handle stream) {
  lazyDriver.launchStream = stream;
  ++lazyDriver.launches;
  return later(stream,
               [=] { return pass("cuGraphLaunch", executable, stream); });
}
CALL cuLaunchKernel(Handle function, unsigned gridX, unsigned gridY,
                    unsigned gridZ, unsigned blockX, unsigned blockY,
                    unsigned blockZ, unsigned shared, Handle stream,
                    void **params, void **extra) {
  lazyDriver.launchStream = stream;
  ++lazyDriver.launches;
  int error = refused();
  error = error ? error : runAll();
  return error ? error
               : pass("cuLaunchKernel", function, gridX, gridY, gridZ, blockX,
                      blockY, blockZ, shared, stream, params, extra);
}
CALL cuGraphExecKernelNodeSetParams_v2(Handle executable, Handle node,
                                       const void *params) {
  int error = refused();
  error = error ? error : runAll();
  return error ? error
               : pass("cuGraphExecKernelNodeSetParams_v2", executable, node,
                      params);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

CALL cuMemAlloc_v2(Address *address, size_t bytes) {
  int result =
      counted(risk("cuMemAlloc_v2", address, bytes), lazyDriver.memory);
  if (!result)
    lazyDriver.memoryBytes += static_cast<int64_t>(blocks[*address] = bytes);
  return result;
}
CALL cuMemFree_v2(Address address) {
  for (auto &[stream, queue] : queues)
    lazyDriver.freedInUse += !queue.work.empty();
  if (blocks.contains(address)) {
    --lazyDriver.memory;
    lazyDriver.memoryBytes -= static_cast<int64_t>(blocks[address]);
    blocks.erase(address);
  }
  return safe(pass("cuMemFree_v2", address));
}
/// As the device's memory is now.
CALL cuMemcpyDtoH_v2(void *to, Address from, size_t bytes) {
  return pass("cuMemcpyDtoH_v2", to, from, bytes);
}
CALL cuMemcpyHtoD_v2(Address to, const void *from, size_t bytes) {
  return pass("cuMemcpyHtoD_v2", to, from, bytes);
}
CALL cuPointerGetAttribute(void *value, int attribute, Address address) {
  return safe(pass("cuPointerGetAttribute", value, attribute, address));
}

//===----------------------------------------------------------------------===//
// The rest
//===----------------------------------------------------------------------===//

CALL cuInit(unsigned flags) { return risk("cuInit", flags); }
CALL cuDeviceGetCount(int *count) { return risk("cuDeviceGetCount", count); }
CALL cuDeviceGet(int *device, int ordinal) {
  return risk("cuDeviceGet", device, ordinal);
}
CALL cuDeviceGetName(char *name, int length, int device) {
  return risk("cuDeviceGetName", name, length, device);
}
CALL cuDeviceGetAttribute(int *value, int attribute, int device) {
  return risk("cuDeviceGetAttribute", value, attribute, device);
}
CALL cuDevicePrimaryCtxRetain(Handle *context, int device) {
  return counted(risk("cuDevicePrimaryCtxRetain", context, device),
                 lazyDriver.primaryContexts);
}
CALL cuDevicePrimaryCtxRelease_v2(int device) {
  return giveBack(lazyDriver.primaryContexts, "cuDevicePrimaryCtxRelease_v2",
                  device);
}
CALL cuCtxCreate_v2(Handle *context, unsigned flags, int device) {
  return pass("cuCtxCreate_v2", context, flags, device);
}
CALL cuCtxDestroy_v2(Handle context) {
  return pass("cuCtxDestroy_v2", context);
}
CALL cuCtxSetCurrent(Handle context) {
  return pass("cuCtxSetCurrent", context);
}
CALL cuCtxGetCurrent(Handle *context) {
  return risk("cuCtxGetCurrent", context);
}
CALL cuCtxGetDevice(int *device) { return risk("cuCtxGetDevice", device); }
CALL cuCtxPushCurrent_v2(Handle context) {
  // Fails only where the context is gone.
  int error = safe(0);
  return error ? error : pass("cuCtxPushCurrent_v2", context);
}
CALL cuCtxPopCurrent_v2(Handle *context) {
  return pass("cuCtxPopCurrent_v2", context);
}
CALL cuModuleLoadData(Handle *module, const void *image) {
  return counted(risk("cuModuleLoadData", module, image), lazyDriver.modules);
}
CALL cuModuleUnload(Handle module) {
  return giveBack(lazyDriver.modules, "cuModuleUnload", module);
}
CALL cuModuleGetFunction(Handle *function, Handle module, const char *name) {
  return risk("cuModuleGetFunction", function, module, name);
}
CALL cuFuncSetAttribute(Handle function, int attribute, int value) {
  return risk("cuFuncSetAttribute", function, attribute, value);
}
CALL cuGetErrorString(int error, const char **text) {
  return pass("cuGetErrorString", error, text);
}
CALL cuGraphCreate(Handle *graph, unsigned flags) {
  return counted(risk("cuGraphCreate", graph, flags), lazyDriver.graphs);
}
CALL cuGraphDestroy(Handle graph) {
  return giveBack(lazyDriver.graphs, "cuGraphDestroy", graph);
}
CALL cuGraphAddKernelNode_v2(Handle *node, Handle graph, const Handle *after,
                             size_t count, const void *params) {
  return risk("cuGraphAddKernelNode_v2", node, graph, after, count, params);
}
CALL cuGraphInstantiateWithFlags(Handle *executable, Handle graph,
                                 unsigned long long flags) {
  return counted(risk("cuGraphInstantiateWithFlags", executable, graph, flags),
                 lazyDriver.executables);
}
CALL cuGraphExecDestroy(Handle executable) {
  return giveBack(lazyDriver.executables, "cuGraphExecDestroy", executable);
}
