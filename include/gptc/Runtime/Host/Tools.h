//===- Tools.h - gptc-run and gptc-bench ----------------------------------===//
//
// Exit status: 0 done, 1 the input is wrong (diagnosed), 2 the command line is
// wrong, 70 internal error.
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_RUNTIME_HOST_TOOLS_H
#define GPTC_RUNTIME_HOST_TOOLS_H

namespace gptc::host {

int runTool(int argc, const char *const *argv);
int benchTool(int argc, const char *const *argv);

} // namespace gptc::host

#endif // GPTC_RUNTIME_HOST_TOOLS_H
