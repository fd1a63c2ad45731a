//===- Workspace.h - where an entry's values lie ----------------*- C++ -*-===//
//
// Plans the memory of an outlined entry: every call result is an output, a
// buffer in the workspace, or the cache. Buffers whose lifetimes do not overlap
// share a slot; a slot is as large as its largest buffer, which is known when a
// session opens. A pure function of the entry.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "gptc/Format/Program.h"
#include "gptc/Kernel/DimAnalysis.h"

namespace gptc {

struct Buffer {
  mlir::Value value;
  gptc_size size; // bytes, dimensions, slot
  int64_t firstCall, lastCall;
};

struct PlannedCall {
  gpt::CallOp op;
  gpt::KernelOp kernel;
  /// Operands in order, then results that are no cache. The index of a weight
  /// is its operand number; the package numbers weights.
  llvm::SmallVector<gptc_arg> args;
  /// Kernel dimension i is the entry's dimension dims[i].
  llvm::SmallVector<int8_t> dims;
};

struct EntryPlan {
  mlir::func::FuncOp entry;
  DimAnalysis dims;
  std::vector<Buffer> buffers;
  int64_t slots = 0;
  std::vector<PlannedCall> calls;
  /// Arguments and results that are tensors.
  llvm::SmallVector<mlir::Value> inputs, outputs;
  llvm::SmallVector<unsigned> outputNumbers; // result numbers of the function
};

/// What an argument or result (numbered behind the arguments) of a kernel lies
/// in memory as: `gpt.element`, else its type's element. Tensors only.
mlir::Type elementInMemory(gpt::KernelOp kernel, unsigned value);

/// Fails, with a diagnostic, on a result that no kernel writes (an argument, a
/// weight), a value returned twice or kept narrow, calls that disagree on how a value is
/// kept, a cache that is not threaded through every
/// writer, and sizes of more than three dynamic dimensions.
mlir::FailureOr<EntryPlan> planEntry(mlir::func::FuncOp entry);

} // namespace gptc
