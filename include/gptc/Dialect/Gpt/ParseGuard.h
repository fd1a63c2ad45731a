//===- ParseGuard.h - refuse what overflows the parser ----------*- C++ -*-===//
//
// MLIR's parser and printer recurse once per nesting level, so a few thousand
// open brackets, or as many aliases each made of the one before, overflow the
// stack. Check a text from outside before parsing it.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "llvm/ADT/StringRef.h"
#include <string>

namespace gptc {

/// A depth that no real model reaches and every default stack bears.
inline constexpr unsigned defaultBracketLimit = 256;

/// True if no bracket of `text` ((, [, {, <) is nested deeper than `limit`, no
/// alias is made of more aliases than that one after another, and no affine
/// expression has more than 1000 operators. Strings and comments do not count,
/// nor does the > of an arrow. Otherwise `error` says "line:col: error: ..." of
/// the first place that is too deep. Says nothing about whether brackets match;
/// the parser does.
bool bracketDepthOk(llvm::StringRef text, unsigned limit, std::string &error);

} // namespace gptc
