//===- Masks.h - masks of attention in fewer words --------------*- C++ -*-===//
#pragma once
#include "gptc/Dialect/Gpt/Gpt.h"
#include "mlir/IR/PatternMatch.h"

namespace gptc {

/// Whether one use, no more, needs the numbers of `op`: not only its sizes.
bool hasOneUser(mlir::Operation *op);

/// What a constant mask says, made at the builder: the scores if it hides
/// nothing, a causal_mask of them if it is the causal one, with a window or
/// without; else null. One that hides by a finite number must be the `only`
/// mask and the last op: behind another one a row may see nothing but what it
/// hides.
mlir::Value simplerMask(mlir::RewriterBase &rewriter, gpt::MaskOp op,
                        bool only);

/// Masks right behind each other become one where that is the same but for
/// rounding; they are ops of the attention whose scores are `last`. Returns how
/// many went.
unsigned mergeMasks(mlir::RewriterBase &rewriter, mlir::Value last);

} // namespace gptc
