//===- Check.h - gptc-check -------------------------------------*- C++ -*-===//
//
// Compares a compiled package with the reference evaluator, end to end and
// kernel by kernel. Exit status: 0 within the bounds, 1 the input is wrong
// (diagnosed), 2 the command line is wrong, 3 a number is out of its bound, 70
// internal error.
//
//===----------------------------------------------------------------------===//

#ifndef GPTC_CHECK_CHECK_H
#define GPTC_CHECK_CHECK_H

namespace gptc {
int checkTool(int argc, const char *const *argv);
} // namespace gptc

#endif // GPTC_CHECK_CHECK_H
