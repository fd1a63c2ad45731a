//===- gptc-bench.cpp - Measures a compiled package -----------------------===//

#include "gptc/Runtime/Host/Tools.h"

int main(int argc, char **argv) { return gptc::host::benchTool(argc, argv); }
