//===- OnDevice.cpp - Where a package's kernels run -----------------------===//
//
// The runtime is compiled once for packages of CPU kernels and once for those
// of a GPU, so that neither has the other's code; natively, for both.
//
//===----------------------------------------------------------------------===//

#include "Device.h"

bool gptc::core::onDevice() {
#ifdef GPTC_ON_DEVICE
  return GPTC_ON_DEVICE;
#else
  return gptc_the_programs.programs[0]->device;
#endif
}
