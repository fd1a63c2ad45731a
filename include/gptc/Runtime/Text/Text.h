//===- Text.h - The Text library in one include ---------------------------===//
//
// Tokenizer, sampler and chat templates for programs that want text in and out
// of a compiled package. The runtime itself (Runtime/Core) knows only token
// ids; this library depends on neither it nor the compiler.
//
// Typical use:
//   parse() -> Tokenizer::create() -> encodePrompt() -> steps of the model
//   with Sampler::sample() -> StreamDecoder::push() until isEndOfGeneration().
//
//===----------------------------------------------------------------------===//
#ifndef GPTC_RUNTIME_TEXT_TEXT_H
#define GPTC_RUNTIME_TEXT_TEXT_H

#include "gptc/Runtime/Text/ChatTemplate.h"
#include "gptc/Runtime/Text/Sampler.h"
#include "gptc/Runtime/Text/Tokenizer.h"
#include "gptc/Runtime/Text/TokenizerData.h"
#include "gptc/Runtime/Text/TokenizerImport.h"

#endif // GPTC_RUNTIME_TEXT_TEXT_H
