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

LogicalResult gptc::gpt::expectBroadcast(Operation *op, StringRef constraint,
                                         StringRef what, RankedTensorType got,
                                         ArrayRef<int64_t> to) {
  int64_t rank = got.getRank(), skip = to.size() - rank;
  bool fits = skip >= 0;
  for (int64_t i = 0; fits && i < rank; ++i)
    fits = got.getDimSize(i) == 1 || agree(got.getDimSize(i), to[skip + i]);
  if (fits)
    return success();
  return op->emitOpError() << "[" << constraint << "] expected " << what
                           << " of the last dimensions of " << shapeText(to)
                           << ", each equal or 1, got " << got;
}

LogicalResult gptc::gpt::expectWindow(Operation *op, StringRef constraint,
                                      IntegerAttr window) {
  if (!window || window.getInt() >= 1)
    return success();
  return op->emitOpError() << "[" << constraint
                           << "] expected a window of at least 1 key, got "
                           << window.getInt();
}

static std::string exactText(double value) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printExactly(os, value);
  return text;
}

LogicalResult gptc::gpt::expectRotary(Operation *op, StringRef constraint,
                                      IntegerAttr rotary, int64_t headDim) {
  if (!rotary)
    return success();
  int64_t channels = rotary.getInt();
  if (channels > 0 && channels % 2 == 0 &&
      (ShapedType::isDynamic(headDim) || channels <= headDim))
    return success();
  return op->emitOpError()
         << "[" << constraint
         << "] expected an even number of rotary channels between 2 and the "
            "head size "
         << dimText(headDim) << ", got " << channels;
}

LogicalResult gptc::gpt::expectCap(Operation *op, StringRef constraint,
                                   double cap) {
  if (isDivisor(cap))
    return success();
  return op->emitOpError() << "[" << constraint
                           << "] expected a cap from 1.2e-38 to 3.4e38, got "
                           << exactText(cap);
}

LogicalResult gptc::gpt::expectSlopes(Operation *op, StringRef constraint,
                                      ArrayRef<double> slopes, int64_t heads) {
  if (!agree(heads, slopes.size()))
    return op->emitOpError()
           << "[" << constraint << "] expected a slope for each of the "
           << heads << " heads, got " << slopes.size();
  for (double slope : slopes)
    if (!isAlibiSlope(slope))
      return op->emitOpError() << "[" << constraint
                               << "] expected slopes from -1e29 to 1e29, got "
                               << exactText(slope);
  return success();
}

LogicalResult gptc::gpt::expectFill(Operation *op, StringRef constraint,
                                    FloatAttr fill, RankedTensorType mask) {
  if (!fill)
    return success();
  if (!mask || !mask.getElementType().isInteger(1))
    return op->emitOpError()
           << "[" << constraint << "] expected fill beside a boolean mask only";
  double value = fill.getValueAsDouble();
  if (static_cast<float>(value) < std::numeric_limits<float>::infinity())
    return success();
  return op->emitOpError() << "[" << constraint
                           << "] expected fill below infinity in f32, got "
                           << exactText(value);
}

LogicalResult gptc::gpt::expectEps(Operation *op, StringRef constraint,
                                   double eps) {
  // Kernels add it in f32.
  if (isDivisor(eps))
    return success();
  return op->emitOpError() << "[" << constraint
                           << "] expected an eps from 1.2e-38 to 3.4e38, got "
                           << exactText(eps);
}

LogicalResult gptc::gpt::expectLayer(Operation *op, StringRef constraint,
                                     int64_t layer, KVCacheType cache) {
  if (layer >= 0 && layer < cache.getLayers())
    return success();
  return op->emitOpError() << "[" << constraint
                           << "] expected layer between 0 and "
                           << cache.getLayers() - 1 << ", got " << layer;
}
