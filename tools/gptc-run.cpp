//===- gptc-run.cpp - Runs a compiled package -----------------------------===//

#include "StandardStreams.h"
#include "gptc/Runtime/Host/Tools.h"

int main(int argc, char **argv) {
  gptc::holdStandardStreams();
  return gptc::host::runTool(argc, argv);
}
