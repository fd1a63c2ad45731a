//===- Verify.cpp - sentences that the verifiers share --------------------===//
#include "Verify.h"
#include <cmath>

using namespace mlir;
using namespace gptc::gpt;

std::string gptc::gpt::dimText(int64_t dim) {
  return ShapedType::isDynamic(dim) ? "?" : std::to_string(dim);
}

static std::string shapeText(ArrayRef<int64_t> shape) {
  std::string text = "[";
  llvm::interleave(
      shape, [&](int64_t dim) { text += dimText(dim); }, [&] { text += ", "; });
  return text + "]";
}

LogicalResult gptc::gpt::expectDim(Operation *op, StringRef constraint,
                                   StringRef what, int64_t got,
                                   int64_t expected) {
  if (agree(got, expected))
    return success();
  return op->emitOpError() << "[" << constraint << "] expected " << what
                           << " to be " << expected << ", got " << got;
}

LogicalResult gptc::gpt::expectRank(Operation *op, StringRef constraint,
                                    StringRef what, RankedTensorType type,
                                    int64_t rank) {
  if (type.getRank() == rank)
    return success();
  return op->emitOpError() << "[" << constraint << "] expected " << what
                           << " of rank " << rank << ", got " << type;
}

LogicalResult gptc::gpt::expectRankAtLeast(Operation *op, StringRef constraint,
                                           StringRef what,
                                           RankedTensorType type,
                                           int64_t rank) {
  if (type.getRank() >= rank)
    return success();
  return op->emitOpError() << "[" << constraint << "] expected " << what
                           << " of rank " << rank << " or more, got " << type;
}

LogicalResult gptc::gpt::expectShape(Operation *op, StringRef constraint,
                                     StringRef what, RankedTensorType got,
                                     ArrayRef<int64_t> expected) {
  bool same = static_cast<size_t>(got.getRank()) == expected.size();
  for (size_t i = 0; same && i < expected.size(); ++i)
    same = agree(got.getDimSize(i), expected[i]);
  if (same)
    return success();
  return op->emitOpError() << "[" << constraint << "] expected " << what
                           << " of shape " << shapeText(expected) << ", got "
                           << got;
}

LogicalResult gptc::gpt::expectEps(Operation *op, StringRef constraint,
                                   double eps) {
  // Kernels add it in f32.
  if (std::isfinite(static_cast<float>(eps)) && static_cast<float>(eps) > 0.0f)
    return success();
  std::string text;
  llvm::raw_string_ostream os(text);
  printExactly(os, eps);
  return op->emitOpError()
         << "[" << constraint
         << "] expected an eps that is finite and above 0 in f32, got " << text;
}

LogicalResult gptc::gpt::expectLayer(Operation *op, StringRef constraint,
                                     int64_t layer, KVCacheType cache) {
  if (layer >= 0 && layer < cache.getLayers())
    return success();
  return op->emitOpError() << "[" << constraint
                           << "] expected layer between 0 and "
                           << cache.getLayers() - 1 << ", got " << layer;
}
