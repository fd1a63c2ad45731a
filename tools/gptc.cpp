//===- gptc.cpp - the compiler --------------------------------------------===//
#include "gptc/Driver/Driver.h"

int main(int argc, char **argv) { return gptc::driverMain(argc, argv); }
