//===- CoreBitcode.h - The embedded runtime as LLVM bitcode ---------------===//
//
// lib/Runtime/Core and lib/Format's packers, compiled for the baseline of
// x86-64 Linux and linked into one module. It needs one symbol,
// `gptc_the_programs` (hidden, Format/Program.h), and defines gptc_core_info,
// _open, _session, _step, _run, _fork, _observe, _close, _last_error and _api
// with the types of gptc_api; everything else may be internalised. Beyond them
// it needs libc with threads only.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_RUNTIME_COREBITCODE_H
#define GPTC_RUNTIME_COREBITCODE_H

#include <stddef.h>

extern "C" {
extern const unsigned char gptcCoreBitcode[];
extern const size_t gptcCoreBitcodeSize;
}

#endif // GPTC_RUNTIME_COREBITCODE_H
