//===- gptc-check.cpp - Compares a package with the reference -------------===//

#include "gptc/Check/Check.h"

int main(int argc, char **argv) { return gptc::checkTool(argc, argv); }
