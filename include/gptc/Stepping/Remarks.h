//===- Remarks.h - what a pass says about its work --------------*- C++ -*-===//
//
// Stable names: the category is `fusion` or `stepping`, the name is the pass
// without `gpt-`, as in `fuse-qkv`.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "mlir/IR/Operation.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace gptc {

inline mlir::remark::RemarkOpts remarkOpts(mlir::Operation *op,
                                           llvm::StringRef category,
                                           llvm::StringRef name) {
  auto opts = mlir::remark::RemarkOpts::name(name).category(category);
  auto function = llvm::dyn_cast<mlir::FunctionOpInterface>(op);
  if (!function)
    function = op->getParentOfType<mlir::FunctionOpInterface>();
  return function ? opts.function(function.getName()) : opts;
}

/// The pass did its work at `op`.
inline void remarkPassed(mlir::Operation *op, llvm::StringRef category,
                         llvm::StringRef name, const llvm::Twine &text) {
  if (op->getContext()->getRemarkEngine())
    mlir::remark::passed(op->getLoc(), remarkOpts(op, category, name))
        << text.str();
}

/// The pass left `op` as it was because of `reason`.
inline void remarkMissed(mlir::Operation *op, llvm::StringRef category,
                         llvm::StringRef name, const llvm::Twine &reason) {
  if (op->getContext()->getRemarkEngine())
    mlir::remark::missed(op->getLoc(), remarkOpts(op, category, name))
        << reason.str();
}

} // namespace gptc
