// Errors of the emulator: a CUresult and a text that says where, what was
// expected and what was found. They travel as exceptions as far as the driver
// call that caused them, and no further.
#ifndef GPTC_CUDA_EMULATOR_ERROR_H
#define GPTC_CUDA_EMULATOR_ERROR_H

#include <stdexcept>
#include <string>

namespace emu {

// The values of CUresult that the emulator returns.
enum Result : int {
  Success = 0,
  InvalidValue = 1,
  OutOfMemory = 2,
  NotInitialized = 3,
  Deinitialized = 4,
  NoDevice = 100,
  InvalidDevice = 101,
  InvalidImage = 200,
  InvalidContext = 201,
  NoBinaryForGpu = 209,
  InvalidPtx = 218,
  UnsupportedPtxVersion = 222,
  InvalidSource = 300,
  FileNotFound = 301,
  InvalidHandle = 400,
  NotFound = 500,
  NotReady = 600,
  IllegalAddress = 700,
  LaunchOutOfResources = 701,
  LaunchTimeout = 702,
  HostMemoryAlreadyRegistered = 712,
  HostMemoryNotRegistered = 713,
  Assert = 710,
  MisalignedAddress = 716,
  InvalidAddressSpace = 717,
  LaunchFailed = 719,
  NotPermitted = 800,
  NotSupported = 801,
  StreamCaptureUnsupported = 900,
};

const char *resultName(int result);
const char *resultText(int result);

struct Error : std::runtime_error {
  Result result;
  Error(Result result, const std::string &text)
      : std::runtime_error(text), result(result) {}
};

// Prints a line to stderr and to the file that GPTC_EMULATOR_LOG names.
void report(const std::string &text);

} // namespace emu

#endif // GPTC_CUDA_EMULATOR_ERROR_H
