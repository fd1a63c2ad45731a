//===- ExplainFusion.h - which ops went into which kernel -------*- C++ -*-===//
//
// --explain-fusion and --emit=dot: the model's ops beside the kernel calls that
// the places of the calls lead back to.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "Remarks.h"

namespace gptc {

/// A table for each entry of the outlined module: kernel and the ops in it, in
/// order, a repeated stretch (a layer) once with its count; then ops that no
/// kernel is left of, and what was left alone and why.
std::string explainFusion(mlir::ModuleOp outlined, const SourceOps &ops,
                          const Remarks &remarks);

/// Two Graphviz graphs for each entry: the model's ops in boxes that are the
/// kernels they went into, and the kernel calls alone.
std::string fusionGraph(mlir::ModuleOp outlined, const SourceOps &ops);

} // namespace gptc
