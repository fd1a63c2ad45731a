//===- Driver.h - the compiler as a program ---------------------*- C++ -*-===//
//
// gptc MODEL.mlir -o DIR. Only the product is written to stdout; diagnostics
// (file:line:col: error: text) go to stderr. Exit status: 0 done, 1 the input
// is wrong, 2 the command line is wrong, 3 --verify-fusions found a fusion out
// of its bound, 70 internal error.
//
//===----------------------------------------------------------------------===//
#pragma once

namespace gptc {
int driverMain(int argc, const char *const *argv);
} // namespace gptc
