//===- LazyDriver.h - What tests ask of the driver between -----*- C++ -*-===//
//
// A libcuda.so.1 that passes its calls on to the emulator's (LazyDriver.cpp).
// The test finds the control with dlsym(handle, "lazyDriver").
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_TEST_UNIT_CORE_LAZYDRIVER_H
#define GPTC_TEST_UNIT_CORE_LAZYDRIVER_H

#include <stdint.h>

struct LazyDriver {
  /// Streams run nothing until somebody waits for it.
  bool lazy;
  /// Calls so far that may fail; call number failAt (0: none) returns
  /// `failure` instead of being made, and all later ones if sticky.
  int64_t calls, failAt;
  int32_t failure;
  bool sticky;
  /// What has been made and not been given back.
  int64_t memory, memoryBytes, streams, events, graphs, executables, modules,
      primaryContexts;
  /// Memory that was given back while streams had work left.
  int64_t freedInUse;
  /// Of the last graph or kernel.
  void *launchStream;
  int64_t launches;
};

#endif // GPTC_TEST_UNIT_CORE_LAZYDRIVER_H
