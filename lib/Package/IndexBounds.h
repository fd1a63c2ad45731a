//===- IndexBounds.h - what run must check about indices --------*- C++ -*-===//
#ifndef GPTC_PACKAGE_INDEXBOUNDS_H
#define GPTC_PACKAGE_INDEXBOUNDS_H
#include "gptc/Package/PackageModel.h"

namespace gptc {

/// Bounds of one entry, for run to check. Fails, with a diagnostic at the op,
/// where an index is neither an i32 argument nor gpt.positions, or an argument
/// indexes by two sizes of which the smaller is not known.
mlir::FailureOr<IndexBounds> indexBounds(const EntryPlan &plan);

} // namespace gptc

#endif // GPTC_PACKAGE_INDEXBOUNDS_H
