//===- Gpu.cpp - What tools ask the GPU's driver beside a package ---------===//

#include "Gpu.h"
#include <dlfcn.h>
#include <string_view>

using namespace gptc::host;

bool gptc::host::isForGpu(const gptc_info &info) {
  return std::string_view(info.target).starts_with("sm_");
}

/// A call of the driver by its name: its CUresult, or 999 (unknown error) where
/// there is no such call.
template <typename... A>
static int call(void *driver, const char *name, A... arguments) {
  void *found = dlsym(driver, name);
  return found ? reinterpret_cast<int (*)(A...)>(found)(arguments...) : 999;
}

std::optional<Gpu> Gpu::open(std::string &error) {
  // Not closed again: the driver's threads may outlive its last context.
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!driver) {
    error = std::string("expected NVIDIA's driver: ") + dlerror();
    return std::nullopt;
  }
  int device = 0;
  char name[256] = "";
  void *context = nullptr;
  int failed = call(driver, "cuInit", 0u);
  if (!failed)
    failed = call(driver, "cuDeviceGet", &device, 0);
  if (!failed)
    failed = call(driver, "cuDeviceGetName", name, int(sizeof(name)), device);
  if (!failed)
    failed = call(driver, "cuDevicePrimaryCtxRetain", &context, device);
  if (!failed) {
    failed = call(driver, "cuCtxPushCurrent_v2", context);
    if (failed)
      call(driver, "cuDevicePrimaryCtxRelease_v2", device);
  }
  if (failed) {
    const char *text = nullptr;
    call(driver, "cuGetErrorString", failed, &text);
    error = std::string("the GPU's driver reported: ") +
            (text ? text : "unknown error");
    return std::nullopt;
  }
  Gpu gpu(driver);
  gpu.title = name;
  return gpu;
}

Gpu::Gpu(Gpu &&other) noexcept
    : driver(other.driver), title(std::move(other.title)) {
  other.driver = nullptr;
}

Gpu::~Gpu() {
  if (!driver)
    return;
  void *popped = nullptr;
  int device = 0;
  call(driver, "cuCtxPopCurrent_v2", &popped);
  call(driver, "cuDeviceGet", &device, 0);
  call(driver, "cuDevicePrimaryCtxRelease_v2", device);
}

int64_t Gpu::memoryUsed() const {
  size_t free = 0, total = 0;
  return call(driver, "cuMemGetInfo_v2", &free, &total)
             ? 0
             : static_cast<int64_t>(total - free);
}
