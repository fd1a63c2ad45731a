//===- Masks.h - masks of attention in fewer words --------------*- C++ -*-===//
#pragma once
#include "gptc/Dialect/Gpt/Gpt.h"
#include "mlir/IR/PatternMatch.h"

namespace gptc {

/// An added number, or a fill, of at most this hides a score: weights below
/// exp(-1e9 + 88) times the largest are 0 in f32.
constexpr double kHidden = -1e9;

/// What a constant mask says, made at the builder: the scores if it hides
/// nothing, a causal_mask of them if it is the causal one, with a window or
/// without; else null. One that hides by a finite number must be the `only`
/// mask and the last op: behind another one a row may see nothing but what it
/// hides.
mlir::Value constantMask(mlir::RewriterBase &rewriter, gpt::MaskOp op,
                         bool only);

/// The same of a mask that compares the positions of queries and keys. If
/// `causal`, another mask hides later keys and this one need not.
mlir::Value positionMask(mlir::RewriterBase &rewriter, gpt::MaskOp op,
                         bool only, bool causal);

/// Says the masks of one attention, innermost first, in fewer words: what they
/// are in the end, null for one that hid nothing. `only`: there is no other
/// one, and it is the last op. The number of masks that changed.
unsigned simplifyMasks(mlir::RewriterBase &rewriter,
                       llvm::MutableArrayRef<mlir::Operation *> masks,
                       bool only);

/// A mask of some scores, made at the builder, that has only dimensions which
/// what it is computed from has, and takes its sizes of that, not of scores;
/// `mask` itself if that is so already.
mlir::Value narrowMask(mlir::RewriterBase &rewriter, mlir::Value mask);

} // namespace gptc
