//===- Gpt.h - the gpt dialect ----------------------------------*- C++ -*-===//
//
// Includes every generated declaration of the dialect: enums, attributes,
// types, ops. docs/Semantics.md says what each op means.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MLProgram/IR/MLProgram.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "gptc/Dialect/Gpt/ExactDouble.h"
#include "gptc/Dialect/Gpt/GptDialect.h.inc"
#include "gptc/Dialect/Gpt/GptEnums.h.inc"
#include "gptc/Dialect/Gpt/Numbers.h"
#define GET_ATTRDEF_CLASSES
#include "gptc/Dialect/Gpt/GptAttrs.h.inc"
#define GET_TYPEDEF_CLASSES
#include "gptc/Dialect/Gpt/GptTypes.h.inc"
#define GET_OP_CLASSES
#include "gptc/Dialect/Gpt/GptOps.h.inc"

namespace gptc::gpt {
/// The sizes that tensors have together: dimensions are counted from the last,
/// each equal or a static 1, which serves all. Failure if they are not so.
llvm::FailureOr<llvm::SmallVector<int64_t>> jointShape(mlir::TypeRange types);
} // namespace gptc::gpt
