//===- ConstantMask.cpp - what a constant mask says -----------------------===//
#include "Masks.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include <cmath>

using namespace mlir;
using namespace gptc;

namespace {
/// A constant mask: which key each query sees.
struct ConstantMask {
  int64_t Sq = 0, Sk = 0;
  SmallVector<bool> visible; // [Sq, Sk]
  bool filled = false;       // hides by a finite number
};
} // namespace

/// `constant` repeated to [Sq, Sk]. None if it differs by head, has numbers
/// that are neither 0 nor hide, or hides a whole row by a finite number: that
/// is an even mixture, not 0.
static std::optional<ConstantMask> readMask(DenseElementsAttr constant,
                                            std::optional<APFloat> fill,
                                            int64_t Sq, int64_t Sk) {
  ArrayRef<int64_t> shape = cast<ShapedType>(constant.getType()).getShape();
  for (int64_t size : shape.drop_back(std::min<size_t>(shape.size(), 2)))
    if (size != 1)
      return std::nullopt;
  int64_t rows = shape.size() >= 2 ? shape[shape.size() - 2] : 1;
  int64_t columns = shape.empty() ? 1 : shape.back();
  ConstantMask mask{Sq, Sk, {}, false};
  SmallVector<bool> numbers;
  if (constant.getElementType().isInteger(1)) {
    llvm::append_range(numbers, constant.getValues<bool>());
    mask.filled = fill && fill->isFinite();
    if (mask.filled && !(fill->convertToDouble() <= kHidden))
      return std::nullopt;
  } else {
    for (const APFloat &each : constant.getValues<APFloat>()) {
      double value = each.convertToDouble();
      if (value != 0 && !(value <= kHidden))
        return std::nullopt;
      mask.filled |= value != 0 && std::isfinite(value);
      numbers.push_back(value == 0);
    }
  }
  for (int64_t i = 0; i < Sq; ++i) {
    bool any = false;
    for (int64_t j = 0; j < Sk; ++j) {
      mask.visible.push_back(
          numbers[(rows == 1 ? 0 : i) * columns + (columns == 1 ? 0 : j)]);
      any |= mask.visible.back();
    }
    if (!any && mask.filled)
      return std::nullopt;
  }
  return mask;
}

/// The window of the causal mask that `mask` is, its Sk for none; nothing if
/// it is no causal mask.
static std::optional<int64_t> causalWindow(const ConstantMask &mask) {
  auto [Sq, Sk, visible, filled] = mask;
  // The last query says how far back a window goes.
  int64_t window = 0;
  while (window < Sk && visible[Sq * Sk - 1 - window])
    ++window;
  for (int64_t i = 0; i < Sq; ++i)
    for (int64_t j = 0; j < Sk; ++j) {
      int64_t at = i + Sk - Sq;
      if (visible[i * Sk + j] != (j <= at && (window == Sk || j > at - window)))
        return std::nullopt;
    }
  return window ? std::optional(window) : std::nullopt;
}

/// The constant of which `slice` is the first T rows and columns, T known when
/// running; as nanoGPT cuts its mask to the length of a sequence.
static Value largerSquare(tensor::ExtractSliceOp slice) {
  SmallVector<OpFoldResult> sizes = slice.getMixedSizes();
  auto source = slice.getSourceType();
  int64_t rank = source.getRank();
  bool corner = rank >= 2 && slice.hasUnitStride() &&
                llvm::all_of(slice.getStaticOffsets(),
                             [](int64_t offset) { return offset == 0; }) &&
                isa<Value>(sizes.back()) && sizes.back() == sizes[rank - 2] &&
                source.getDimSize(rank - 1) == source.getDimSize(rank - 2);
  return corner ? slice.getSource() : Value();
}

Value gptc::constantMask(RewriterBase &rewriter, gpt::MaskOp op, bool only) {
  RankedTensorType type = op.getS().getType();
  int64_t Sq = type.getDimSize(type.getRank() - 2),
          Sk = type.getDimSize(type.getRank() - 1);
  Value source = op.getMask();
  if (auto slice = source.getDefiningOp<tensor::ExtractSliceOp>()) {
    source = largerSquare(slice);
    if (source)
      Sq = Sk = slice.getSourceType().getShape().back();
  }
  DenseElementsAttr constant;
  if (!source || Sq <= 0 || Sk <= 0 ||
      !matchPattern(source, m_Constant(&constant)))
    return {};
  auto mask = readMask(constant, op.getFill(), Sq, Sk);
  if (!mask || (mask->filled && !only))
    return {};
  if (llvm::all_of(mask->visible, [](bool each) { return each; }))
    return op.getS();
  auto window = causalWindow(*mask);
  if (!window)
    return {};
  IntegerAttr attr;
  if (*window < Sk)
    attr = rewriter.getI64IntegerAttr(*window);
  return gpt::CausalMaskOp::create(rewriter, op.getLoc(), type, op.getS(),
                                   attr);
}
