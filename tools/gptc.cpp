//===- gptc.cpp - the compiler --------------------------------------------===//
#include "LlvmStreams.h"
#include "StandardStreams.h"
#include "gptc/Driver/Driver.h"

int main(int argc, char **argv) {
  gptc::holdStandardStreams();
  return gptc::finishStreams("gptc", gptc::driverMain(argc, argv));
}
