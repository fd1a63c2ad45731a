//===- Device.cpp - A GPU through its driver ------------------------------===//
//
// Opening, memory, launches.
//
//===----------------------------------------------------------------------===//

#include "DeviceDriver.h"
#include <dlfcn.h>
#include <string.h>

namespace gptc::core {

namespace {
DevicePointer address(const void *pointer) {
  return reinterpret_cast<DevicePointer>(pointer);
}

/// A product that is no size any more becomes -1, which no driver takes.
uint32_t extentAt(const gptc_extent &extent, const int64_t *dims) {
  uint64_t count = extent.mul;
  for (int8_t dim : extent.dims)
    if (dim >= 0)
      count = saturatingMul(count, dims[dim]);
  count = count / extent.div + (count % extent.div != 0);
  return count > UINT32_MAX ? UINT32_MAX
         : count            ? static_cast<uint32_t>(count)
                            : 1;
}
} // namespace

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

static gptc_status loadDriver(Device &device) {
  device.handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!device.handle)
    return fail(GPTC_NO_DEVICE,
                "open: expected NVIDIA's driver, which this package's kernels "
                "run on: %.200s; install it, or compile with --target=cpu",
                dlerror());
  void *found[driverCount];
  for (uint64_t i = 0; i < driverCount; ++i) {
    found[i] = dlsym(device.handle, driverNames[i]);
    if (!found[i])
      return fail(GPTC_NO_DEVICE,
                  "open: expected a driver of CUDA 12 or later, got one "
                  "without %s; update it",
                  driverNames[i]);
  }
  memcpy(&device.driver, found, sizeof(found));
  return GPTC_OK;
}

static gptc_status chooseDevice(const Model &model, Device &device) {
  const Driver &driver = device.driver;
  int32_t count = 0;
  Result error = driver.Init(0);
  if (!error)
    error = driver.DeviceGetCount(&count);
  if (error || !count)
    return fail(GPTC_NO_DEVICE, "open: expected a GPU, got none: %s",
                error ? device.text(error) : "the driver sees no device");
  void *current = nullptr;
  error = driver.CtxGetCurrent(&current);
  if (error)
    return device.failed("open", error);
  if (model.host.stream && !current)
    return fail(GPTC_INVALID_ARGUMENT,
                "open: expected the context of host->stream to be current");
  error = current ? driver.CtxGetDevice(&device.number)
                  : driver.DeviceGet(&device.number, 0);
  device.context = current;
  if (!error && !current) {
    error = driver.DevicePrimaryCtxRetain(&device.context, device.number);
    device.primary = !error;
  }
  if (error)
    return device.failed("open", error);

  int32_t major = 0, minor = 0;
  char name[64] = "";
  driver.DeviceGetAttribute(&major, attributeMajor, device.number);
  driver.DeviceGetAttribute(&minor, attributeMinor, device.number);
  driver.DeviceGetName(name, sizeof(name), device.number);
  int64_t needed = programOf(model).device->compute_capability;
  if (major * 10 + minor < needed)
    return fail(GPTC_NO_DEVICE,
                "open: expected a GPU of compute capability %lld.%lld or "
                "later, got %.60s of %d.%d",
                static_cast<long long>(needed / 10),
                static_cast<long long>(needed % 10), name, major, minor);
  return GPTC_OK;
}

/// Functions that want more than the usual 48 KiB of shared memory must say so.
static Result allowSharedBytes(const Model &model, const Device &device) {
  const gptc_program &program = programOf(model);
  Result error = 0;
  for (int32_t e = 0; e < program.entry_count; ++e)
    for (int32_t c = 0; c < program.entries[e].call_count; ++c) {
      const gptc_call_desc &call = program.entries[e].calls[c];
      for (int32_t v = 0; v < call.variant_count; ++v)
        for (int64_t l = 0; l < call.variants[v].launch_count && !error; ++l) {
          const gptc_launch &launch = call.variants[v].launches[l];
          if (launch.shared_bytes > (48 << 10))
            error = device.driver.FuncSetAttribute(
                device.functions[launch.function], attributeMaxSharedBytes,
                static_cast<int32_t>(launch.shared_bytes));
        }
    }
  return error;
}

static gptc_status loadCode(const Model &model, Device &device) {
  const gptc_device_code &code = *programOf(model).device;
  if (!allocate(model.host, code.function_count * sizeof(void *), true,
                device.functionMemory))
    return GPTC_NO_MEMORY;
  device.functions = static_cast<void **>(device.functionMemory.pointer);
  OnDevice current(&device);
  Result error = device.driver.ModuleLoadData(&device.module, code.image);
  for (int64_t i = 0; i < code.function_count && !error; ++i)
    error = device.driver.ModuleGetFunction(&device.functions[i], device.module,
                                            code.functions[i]);
  if (!error)
    error = allowSharedBytes(model, device);
  return error ? device.failed("open: the kernels cannot be loaded", error)
               : GPTC_OK;
}

gptc_status openDevice(Model &model) {
  Block memory;
  if (!allocate(model.host, sizeof(Device), true, memory))
    return GPTC_NO_MEMORY;
  model.device = static_cast<Device *>(memory.pointer);
  model.device->self = memory;
  gptc_status status = loadDriver(*model.device);
  if (status == GPTC_OK)
    status = chooseDevice(model, *model.device);
  if (status == GPTC_OK)
    status = loadCode(model, *model.device);
  return status;
}

void closeDevice(Model &model) {
  Device *device = model.device;
  if (!device)
    return;
  if (device->module) {
    OnDevice current(device);
    releaseOnDevice(*device, model.deviceWeights);
    device->driver.ModuleUnload(device->module);
  }
  if (device->primary)
    device->driver.DevicePrimaryCtxRelease(device->number);
  release(model.host, device->functionMemory);
  // The driver's threads may outlive its last context: it stays loaded.
  Block self = device->self;
  release(model.host, self);
  model.device = nullptr;
}

// A context that is gone is not popped either; what follows reports it.
OnDevice::OnDevice(const Device *given) : device(given) {
  if (device && device->driver.CtxPushCurrent(device->context))
    device = nullptr;
}

OnDevice::~OnDevice() {
  void *popped;
  if (device)
    device->driver.CtxPopCurrent(&popped);
}

gptc_status openQueue(const Model &model, Queue &queue) {
  queue = {};
  queue.device = model.device;
  queue.stream = model.host.stream;
  const Driver &driver = model.device->driver;
  Result error = 0;
  if (!queue.stream) {
    error = driver.StreamCreate(&queue.stream, streamNonBlocking);
    queue.owned = !error;
  }
  for (int32_t i = 0; i < Queue::eventCount && !error; ++i) {
    error = driver.EventCreate(&queue.events[i], i == Queue::tablesRead
                                                     ? eventDisableTiming
                                                     : eventDefault);
    if (error)
      queue.events[i] = nullptr;
  }
  if (!error)
    return GPTC_OK;
  closeQueue(queue);
  return model.device->failed("no stream", error);
}

void closeQueue(Queue &queue) {
  for (void *event : queue.events)
    if (event)
      queue.device->driver.EventDestroy(event);
  if (queue.owned)
    queue.device->driver.StreamDestroy(queue.stream);
  queue = {};
}

void synchronize(const Queue &queue) {
  if (queue.stream)
    queue.device->driver.StreamSynchronize(queue.stream);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

bool allocateOnDevice(Queue &queue, uint64_t bytes, bool zeroed, Block &block) {
  block = {};
  uint64_t total = padded(bytes);
  DevicePointer pointer = 0;
  Result error = total > PTRDIFF_MAX
                     ? outOfMemory
                     : queue.device->driver.MemAlloc(&pointer, total);
  if (error == outOfMemory) {
    fail(GPTC_NO_MEMORY, "no memory for %llu bytes on the GPU: %s",
         static_cast<unsigned long long>(total), queue.device->text(error));
    return false;
  }
  if (error) { // of an earlier kernel, maybe of another session's
    note(queue, "memory of the GPU", error);
    finish(queue, false);
    return false;
  }
  block = {reinterpret_cast<void *>(pointer), total};
  if (zeroed)
    clear(queue, block.pointer, total);
  return true;
}

gptc_status allocationFailed(const Queue &queue) {
  return queue.error && queue.error != outOfMemory ? GPTC_DEVICE_ERROR
                                                   : GPTC_NO_MEMORY;
}

void releaseOnDevice(const Device &device, Block &block) {
  if (block.pointer)
    device.driver.MemFree(address(block.pointer));
  block = {};
}

void copyIn(Queue &queue, void *to, const void *from, uint64_t bytes) {
  if (bytes && !queue.error)
    note(queue, "copying to the GPU",
         queue.device->driver.MemcpyHtoDAsync(address(to), from, bytes,
                                              queue.stream));
}

bool isOnDevice(const Queue &queue, const void *pointer) {
  uint32_t type = 0;
  return !queue.device->driver.PointerGetAttribute(&type, pointerMemoryType,
                                                   address(pointer)) &&
         type == memoryTypeDevice;
}

void copyOut(Queue &queue, void *to, const void *from, uint64_t bytes) {
  if (!bytes || queue.error)
    return;
  if (isOnDevice(queue, to))
    return copyWithin(queue, to, from, bytes);
  note(queue, "copying from the GPU",
       queue.device->driver.MemcpyDtoHAsync(to, address(from), bytes,
                                            queue.stream));
}

void copyWithin(Queue &queue, void *to, const void *from, uint64_t bytes) {
  if (bytes && !queue.error)
    note(queue, "copying on the GPU",
         queue.device->driver.MemcpyDtoDAsync(address(to), address(from), bytes,
                                              queue.stream));
}

static void record(Queue &queue, int32_t event) {
  if (!queue.error)
    note(queue, "recording an event",
         queue.device->driver.EventRecord(queue.events[event], queue.stream));
}

void copyTables(Session &session) {
  Queue &queue = session.queue;
  copyIn(queue, session.mirror.pointer, session.tables.pointer,
         session.mirroredBytes);
  record(queue, Queue::tablesRead);
}

void awaitTables(Session &session) {
  Queue &queue = session.queue;
  if (queue.events[Queue::tablesRead] && !queue.error)
    note(
        queue, "waiting for the GPU",
        queue.device->driver.EventSynchronize(queue.events[Queue::tablesRead]));
}

void clear(Queue &queue, void *to, uint64_t bytes) {
  if (bytes && !queue.error)
    note(queue, "clearing memory of the GPU",
         queue.device->driver.MemsetD8Async(address(to), 0, bytes,
                                            queue.stream));
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

const gptc_variant &variantOf(const gptc_call_desc &call, const int64_t *dims) {
  const int64_t rows = call.dim_count ? dims[0] : 0;
  const gptc_variant *variant = call.variants;
  for (int32_t v = 1; v < call.variant_count && rows > variant->most_rows; ++v)
    ++variant;
  return *variant;
}

KernelNode nodeOf(Session &session, const gptc_call_desc &call,
                  const gptc_launch &launch, int64_t *dims) {
  int32_t count = 0;
  for (int32_t a = 0; a < call.arg_count; ++a)
    session.params[count++] = session.args + a;
  if (call.scratch_bytes)
    session.params[count++] = &session.scratch.pointer;
  for (int32_t d = 0; d < call.dim_count; ++d)
    session.params[count++] = dims + d;
  return {session.queue.device->functions[launch.function],
          {extentAt(launch.grid[0], dims), extentAt(launch.grid[1], dims),
           extentAt(launch.grid[2], dims)},
          {static_cast<uint32_t>(launch.threads), 1, 1},
          static_cast<uint32_t>(launch.shared_bytes),
          session.params,
          nullptr,
          nullptr,
          nullptr};
}

void launch(Session &session, const gptc_call_desc &call, int64_t *dims) {
  Queue &queue = session.queue;
  const gptc_variant &variant = variantOf(call, dims);
  for (int64_t l = 0; l < variant.launch_count && !queue.error; ++l) {
    KernelNode n = nodeOf(session, call, variant.launches[l], dims);
    note(queue, call.name,
         queue.device->driver.LaunchKernel(n.function, n.grid[0], n.grid[1],
                                           n.grid[2], n.block[0], n.block[1],
                                           n.block[2], n.sharedBytes,
                                           queue.stream, n.params, nullptr));
  }
}

float launchTimed(Session &session, const gptc_call_desc &call, int64_t *dims) {
  Queue &queue = session.queue;
  record(queue, Queue::before);
  launch(session, call, dims);
  record(queue, Queue::after);
  finish(queue, true);
  float milliseconds = 0;
  if (!queue.error)
    note(queue, "reading an event",
         queue.device->driver.EventElapsedTime(&milliseconds,
                                               queue.events[Queue::before],
                                               queue.events[Queue::after]));
  return queue.error ? 0 : milliseconds;
}

gptc_status finish(Queue &queue, bool wait) {
  if (wait && !queue.error)
    note(queue, "waiting for the GPU",
         queue.device->driver.StreamSynchronize(queue.stream));
  return queue.error ? queue.device->failed(queue.failed, queue.error)
                     : GPTC_OK;
}

} // namespace gptc::core
