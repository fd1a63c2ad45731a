// Names of results, and where reports go.
#include "Error.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace emu {

namespace {
struct Entry {
  int result;
  const char *name, *text;
};
constexpr Entry entries[] = {
    {Success, "CUDA_SUCCESS", "no error"},
    {InvalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {OutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {NotInitialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {Deinitialized, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {NoDevice, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {InvalidDevice, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {InvalidImage, "CUDA_ERROR_INVALID_IMAGE",
     "device kernel image is invalid"},
    {InvalidContext, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {NoBinaryForGpu, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {InvalidPtx, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {UnsupportedPtxVersion, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the provided PTX was compiled with an unsupported toolchain"},
    {InvalidSource, "CUDA_ERROR_INVALID_SOURCE",
     "device kernel image is invalid"},
    {FileNotFound, "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
    {InvalidHandle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {NotFound, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {NotReady, "CUDA_ERROR_NOT_READY", "device not ready"},
    {IllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {LaunchOutOfResources, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "too many resources requested for launch"},
    {LaunchTimeout, "CUDA_ERROR_LAUNCH_TIMEOUT",
     "the launch timed out and was terminated"},
    {Assert, "CUDA_ERROR_ASSERT", "device-side assert triggered"},
    {HostMemoryAlreadyRegistered, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {HostMemoryNotRegistered, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"},
    {MisalignedAddress, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {InvalidAddressSpace, "CUDA_ERROR_INVALID_ADDRESS_SPACE",
     "operation not supported on global/shared address space"},
    {LaunchFailed, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {NotPermitted, "CUDA_ERROR_NOT_PERMITTED", "operation not permitted"},
    {NotSupported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {StreamCaptureUnsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
};
} // namespace

const char *resultName(int result) {
  for (const Entry &entry : entries)
    if (entry.result == result)
      return entry.name;
  return nullptr;
}

const char *resultText(int result) {
  for (const Entry &entry : entries)
    if (entry.result == result)
      return entry.text;
  return nullptr;
}

void report(const std::string &text) {
  static std::mutex mutex;
  std::lock_guard<std::mutex> lock(mutex);
  std::fprintf(stderr, "cuda-emulator: %s\n", text.c_str());
  const char *path = std::getenv("GPTC_EMULATOR_LOG");
  if (!path || !*path)
    return;
  if (std::FILE *file = std::fopen(path, "a")) {
    std::fprintf(file, "%s\n", text.c_str());
    std::fclose(file);
  }
}

} // namespace emu
