//===- gptc-run.cpp - Runs a compiled package -----------------------------===//

#include "gptc/Runtime/Host/Tools.h"

int main(int argc, char **argv) { return gptc::host::runTool(argc, argv); }
