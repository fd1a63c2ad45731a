//===- gptc-import.cpp - From a checkpoint to model.mlir ------------------===//

#include "LlvmStreams.h"
#include "StandardStreams.h"
#include "gptc/Import/ImportTool.h"

int main(int argc, char **argv) {
  gptc::holdStandardStreams();
  return gptc::finishStreams("gptc-import", gptc::importTool(argc, argv));
}
