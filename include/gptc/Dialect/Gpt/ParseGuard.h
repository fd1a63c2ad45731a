//===- ParseGuard.h - refuse what overflows the parser ----------*- C++ -*-===//
//
// MLIR's parser and printer recurse once per nesting level, so a few thousand
// open brackets, or as many aliases each made of the one before, overflow the
// stack. And the parsers of tensor.from_elements, vector.from_elements and
// vector.to_elements take memory for as many elements as the type says that is
// written there. Check a text from outside before parsing it.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "llvm/ADT/StringRef.h"
#include <string>

namespace gptc {

/// A depth that no real model reaches and every default stack bears.
inline constexpr unsigned defaultBracketLimit = 256;

/// True if no bracket of `text` ((, [, {, <) is nested deeper than `limit`, no
/// alias is made of more aliases than that one after another, no affine
/// expression has more than 1000 operators, and none of the ops above is used
/// (the generic form, in quotes, is harmless). Strings and comments do not
/// count, nor does the > of an arrow. Otherwise `error` says "line:col: error:
/// ..." of the first such place. Says nothing about whether brackets match; the
/// parser does.
bool bracketDepthOk(llvm::StringRef text, unsigned limit, std::string &error);

} // namespace gptc
