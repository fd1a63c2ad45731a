// What the emulated device is: its limits by SM version, as the CUDA
// programming guide's tables of compute capabilities give them.
#ifndef GPTC_CUDA_EMULATOR_DEVICE_H
#define GPTC_CUDA_EMULATOR_DEVICE_H

#include "Module.h"

namespace emu {

struct Device {
  int sm; // 80, 86, 89 or 90
  int sharedPerBlock = 48 << 10;
  int sharedOptIn, sharedPerMultiprocessor;
  int threadsPerMultiprocessor, blocksPerMultiprocessor;
  int multiprocessors = 8; // few, so that grids sized by them stay small
  std::string name;
};

// By GPTC_EMULATOR_SM; 80 unless it names another one of the four.
const Device &device();

// CUdevice_attribute; false for a number that is none.
bool deviceAttribute(int attribute, int &value);

// Whether the launch fits: Success or what cuLaunchKernel returns, with a
// report of what did not fit.
Result checkLaunch(const Kernel &kernel, const uint32_t (&grid)[3],
                   const uint32_t (&block)[3], uint32_t dynamicShared);

int residentBlocks(const Kernel &kernel, int threads, size_t dynamicShared);

} // namespace emu

#endif // GPTC_CUDA_EMULATOR_DEVICE_H
