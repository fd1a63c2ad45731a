//===- gptc-import.cpp - From a checkpoint to model.mlir ------------------===//

#include "gptc/Import/ImportTool.h"

int main(int argc, char **argv) { return gptc::importTool(argc, argv); }
