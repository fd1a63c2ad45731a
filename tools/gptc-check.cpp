//===- gptc-check.cpp - Compares a package with the reference -------------===//

#include "LlvmStreams.h"
#include "StandardStreams.h"
#include "gptc/Check/Check.h"

int main(int argc, char **argv) {
  gptc::holdStandardStreams();
  return gptc::finishStreams("gptc-check", gptc::checkTool(argc, argv));
}
