//===- CoreAssembly.h - The embedded runtime as assembly ------------------===//
//
// lib/Runtime/Core and lib/Format's packers, optimised as one module for the
// baseline of x86-64 Linux, as LLVM prints them; once for packages of CPU
// kernels and once for those of a GPU. Each needs one symbol,
// `gptc_the_programs` (Format/Program.h), and has as its only global ones
// gptc_core_info, _open, _session, _step, _run, _fork, _observe, _close,
// _last_error and _api with the types of gptc_api. Beyond them it needs libc
// with threads only.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_RUNTIME_COREASSEMBLY_H
#define GPTC_RUNTIME_COREASSEMBLY_H

#include <stddef.h>

extern "C" {
extern const char gptcCoreOnCpu[], gptcCoreOnGpu[];
extern const size_t gptcCoreOnCpuSize, gptcCoreOnGpuSize;
}

#endif // GPTC_RUNTIME_COREASSEMBLY_H
