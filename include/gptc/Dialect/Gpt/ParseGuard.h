//===- ParseGuard.h - refuse text that would overflow the parser -*- C++
//-*-===//
//
// MLIR's parser recurses once per nesting level, so a few thousand open
// brackets overflow the stack. Check a text from outside before parsing it.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "llvm/ADT/StringRef.h"
#include <string>

namespace gptc {

/// A depth that no real model reaches and every default stack bears.
inline constexpr unsigned defaultBracketLimit = 256;

/// True if no bracket of `text` ((, [, {, <) is nested deeper than `limit`.
/// Strings and comments do not count, nor does the > of an arrow. Otherwise
/// `error` says "line:col: error: ..." of the first bracket that is too deep. Says
/// nothing about whether brackets match; the parser does.
bool bracketDepthOk(llvm::StringRef text, unsigned limit, std::string &error);

} // namespace gptc
