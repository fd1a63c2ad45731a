//===- GptDialect.cpp - registration of the gpt dialect -------------------===//
#include "gptc/Dialect/Gpt/Gpt.h"

using namespace mlir;
using namespace gptc::gpt;

#include "gptc/Dialect/Gpt/GptDialect.cpp.inc"

void GptDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "gptc/Dialect/Gpt/GptOps.cpp.inc"
      >();
  registerAttributes();
  registerTypes();
}
