//===- DeviceDriver.h - The driver's functions ----------------------------===//
//
// Names and numbers are those of NVIDIA's CUDA driver API, 12 or later; "_v2"
// is part of the names of functions that have changed.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_RUNTIME_CORE_DEVICEDRIVER_H
#define GPTC_RUNTIME_CORE_DEVICEDRIVER_H

#include "Device.h"

namespace gptc::core {

using Result = int32_t;         // CUresult; 0 is success
using DevicePointer = uint64_t; // CUdeviceptr
constexpr Result outOfMemory = 2;
constexpr int32_t attributeMajor = 75, attributeMinor = 76;
constexpr int32_t attributeMaxSharedBytes = 8; // of a function, dynamic
constexpr int32_t pointerMemoryType = 2, memoryTypeDevice = 2;
constexpr uint32_t streamNonBlocking = 1;
constexpr uint32_t eventDefault = 0, eventDisableTiming = 2;

/// CUDA_KERNEL_NODE_PARAMS_v2: one launch.
struct KernelNode {
  void *function;
  uint32_t grid[3], block[3], sharedBytes;
  void **params;
  void **extra;
  void *kernel, *context;
};
static_assert(sizeof(KernelNode) == 72);

/// The driver's functions that packages call.
struct Driver {
  Result (*Init)(uint32_t);
  Result (*DeviceGetCount)(int32_t *);
  Result (*DeviceGet)(int32_t *, int32_t);
  Result (*DeviceGetName)(char *, int32_t, int32_t);
  Result (*DeviceGetAttribute)(int32_t *, int32_t, int32_t);
  Result (*DevicePrimaryCtxRetain)(void **, int32_t);
  Result (*DevicePrimaryCtxRelease)(int32_t);
  Result (*CtxGetCurrent)(void **);
  Result (*CtxGetDevice)(int32_t *);
  Result (*CtxPushCurrent)(void *);
  Result (*CtxPopCurrent)(void **);
  Result (*ModuleLoadData)(void **, const void *);
  Result (*ModuleUnload)(void *);
  Result (*ModuleGetFunction)(void **, void *, const char *);
  Result (*FuncSetAttribute)(void *, int32_t, int32_t);
  Result (*MemAlloc)(DevicePointer *, size_t);
  Result (*MemFree)(DevicePointer);
  Result (*MemcpyHtoDAsync)(DevicePointer, const void *, size_t, void *);
  Result (*MemcpyDtoHAsync)(void *, DevicePointer, size_t, void *);
  Result (*MemcpyDtoDAsync)(DevicePointer, DevicePointer, size_t, void *);
  Result (*MemsetD8Async)(DevicePointer, uint8_t, size_t, void *);
  Result (*PointerGetAttribute)(void *, int32_t, DevicePointer);
  Result (*StreamCreate)(void **, uint32_t);
  Result (*StreamDestroy)(void *);
  Result (*StreamSynchronize)(void *);
  Result (*EventCreate)(void **, uint32_t);
  Result (*EventDestroy)(void *);
  Result (*EventRecord)(void *, void *);
  Result (*EventSynchronize)(void *);
  Result (*EventElapsedTime)(float *, void *, void *);
  Result (*LaunchKernel)(void *, uint32_t, uint32_t, uint32_t, uint32_t,
                         uint32_t, uint32_t, uint32_t, void *, void **,
                         void **);
  Result (*GetErrorString)(Result, const char **);
  Result (*GraphCreate)(void **, uint32_t);
  Result (*GraphAddKernelNode)(void **, void *, void *const *, size_t,
                               const KernelNode *);
  Result (*GraphInstantiate)(void **, void *, uint64_t);
  Result (*GraphExecKernelNodeSetParams)(void *, void *, const KernelNode *);
  Result (*GraphLaunch)(void *, void *);
  Result (*GraphExecDestroy)(void *);
  Result (*GraphDestroy)(void *);
};

/// In the order of Driver.
constexpr const char *driverNames[] = {
    "cuInit",
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuDeviceGetAttribute",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2",
    "cuCtxGetCurrent",
    "cuCtxGetDevice",
    "cuCtxPushCurrent_v2",
    "cuCtxPopCurrent_v2",
    "cuModuleLoadData",
    "cuModuleUnload",
    "cuModuleGetFunction",
    "cuFuncSetAttribute",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyDtoDAsync_v2",
    "cuMemsetD8Async",
    "cuPointerGetAttribute",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventRecord",
    "cuEventSynchronize",
    "cuEventElapsedTime",
    "cuLaunchKernel",
    "cuGetErrorString",
    "cuGraphCreate",
    "cuGraphAddKernelNode_v2",
    "cuGraphInstantiateWithFlags",
    "cuGraphExecKernelNodeSetParams_v2",
    "cuGraphLaunch",
    "cuGraphExecDestroy",
    "cuGraphDestroy",
};
constexpr uint64_t driverCount = sizeof(driverNames) / sizeof(*driverNames);
static_assert(sizeof(Driver) == driverCount * sizeof(void *));

struct Device {
  Driver driver;
  void *handle; ///< of the driver
  void *context;
  int32_t number;  ///< CUdevice
  int32_t primary; ///< the context is the device's primary one, retained
  void *module;
  void **functions;
  Block functionMemory, self;

  const char *text(Result error) const {
    const char *text = nullptr;
    return driver.GetErrorString(error, &text) || !text ? "unknown error"
                                                        : text;
  }
  gptc_status failed(const char *what, Result error) const {
    return fail(error == outOfMemory ? GPTC_NO_MEMORY : GPTC_DEVICE_ERROR,
                "%s: the GPU's driver reported error %d: %s", what, error,
                text(error));
  }
};

/// Keeps the first error.
inline void note(Queue &queue, const char *what, Result error) {
  if (!error || queue.error)
    return;
  queue.error = error;
  queue.failed = what;
}

/// One launch of a call that has been bound; its params are session.params.
KernelNode nodeOf(Session &session, const gptc_call_desc &call,
                  const gptc_launch &launch, int64_t *dims);

} // namespace gptc::core

#endif // GPTC_RUNTIME_CORE_DEVICEDRIVER_H
