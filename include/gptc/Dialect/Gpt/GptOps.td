//===- GptOps.td - operations of the gpt dialect -----------*- tablegen -*-===//
#ifndef GPTC_DIALECT_GPT_OPS
#define GPTC_DIALECT_GPT_OPS

include "gptc/Dialect/Gpt/GraphOps.td"
include "gptc/Dialect/Gpt/StepOps.td"
include "gptc/Dialect/Gpt/FusedOps.td"
include "gptc/Dialect/Gpt/KernelOps.td"

#endif
