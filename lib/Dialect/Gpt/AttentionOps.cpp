//===- AttentionOps.cpp - masks and biases of scores ----------------------===//
//
// Syntax and verifiers of the ops between the product of q and k and the
// softmax. Their numbers are printed so that they read back to the same bits.
//
//===----------------------------------------------------------------------===//
#include "Verify.h"
#include <cmath>

using namespace mlir;
using namespace gptc::gpt;

FailureOr<SmallVector<int64_t>> gptc::gpt::jointShape(TypeRange types) {
  SmallVector<int64_t> shape; // innermost first
  for (Type type : types)
    for (auto [i, size] : llvm::enumerate(
             llvm::reverse(cast<RankedTensorType>(type).getShape()))) {
      if (i == shape.size())
        shape.push_back(size);
      else if (shape[i] == 1 || (size != 1 && ShapedType::isDynamic(shape[i])))
        shape[i] = size;
      else if (size != 1 && !ShapedType::isDynamic(size) && size != shape[i])
        return failure();
    }
  std::reverse(shape.begin(), shape.end());
  return shape;
}

LogicalResult BroadcastOp::verify() {
  auto x = cast<RankedTensorType>(getX().getType());
  auto result = cast<RankedTensorType>(getResult().getType());
  if (getLike().empty())
    return emitOpError() << "[broadcast-C3] expected a tensor after like";
  FailureOr<SmallVector<int64_t>> like = jointShape(getLike().getTypes());
  if (failed(like))
    return emitOpError() << "[broadcast-C3] expected tensors after like whose "
                            "dimensions, from the last on, are equal or 1, got "
                         << getLike().getTypes();
  if (failed(expectBroadcast(*this, "broadcast-C1", "x", x, *like)))
    return failure();
  if (result.getElementType() != x.getElementType())
    return emitOpError() << "[broadcast-C2] expected a result of "
                         << x.getElementType() << " as x, got " << result;
  return expectShape(*this, "broadcast-C2", "a result", result, *like);
}

LogicalResult CausalMaskOp::verify() {
  if (failed(expectRankAtLeast(*this, "causal_mask-C1", "scores",
                               getS().getType(), 2)))
    return failure();
  return expectWindow(*this, "causal_mask-C2", getWindowAttr());
}

//===----------------------------------------------------------------------===//
// mask
//===----------------------------------------------------------------------===//

ParseResult MaskOp::parse(OpAsmParser &parser, OperationState &result) {
  OpAsmParser::UnresolvedOperand s, mask;
  Type type, maskType;
  if (parser.parseOperand(s) || parser.parseComma() ||
      parser.parseOperand(mask))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("fill"))) {
    double fill;
    if (parser.parseFloat(fill))
      return failure();
    result.addAttribute(getFillAttrName(result.name),
                        parser.getBuilder().getF64FloatAttr(fill));
  }
  if (parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseColonType(type) || parser.parseComma() ||
      parser.parseType(maskType) ||
      parser.resolveOperand(s, type, result.operands) ||
      parser.resolveOperand(mask, maskType, result.operands))
    return failure();
  result.addTypes(type);
  return success();
}

void MaskOp::print(OpAsmPrinter &printer) {
  printer << " " << getS() << ", " << getMask();
  if (auto fill = getFill()) {
    printer << " fill ";
    printExactly(printer.getStream(), fill->convertToDouble());
  }
  printer.printOptionalAttrDict((*this)->getAttrs(), {getFillAttrName()});
  printer << " : " << getS().getType() << ", " << getMask().getType();
}

LogicalResult MaskOp::verify() {
  RankedTensorType s = getS().getType();
  auto mask = cast<RankedTensorType>(getMask().getType());
  if (failed(expectRankAtLeast(*this, "mask-C1", "scores", s, 2)) ||
      failed(expectBroadcast(*this, "mask-C2", "a mask", mask, s.getShape())))
    return failure();
  return expectFill(*this, "mask-C3", getFillAttr(), mask);
}

//===----------------------------------------------------------------------===//
// alibi
//===----------------------------------------------------------------------===//

ParseResult gptc::gpt::parseNumbers(OpAsmParser &parser,
                                    SmallVectorImpl<double> &numbers) {
  return parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square, [&] {
    return parser.parseFloat(numbers.emplace_back());
  });
}

void gptc::gpt::printNumbers(OpAsmPrinter &printer, ArrayRef<double> numbers) {
  printer << "[";
  llvm::interleaveComma(numbers, printer.getStream(), [&](double number) {
    printExactly(printer.getStream(), number);
  });
  printer << "]";
}

ParseResult AlibiOp::parse(OpAsmParser &parser, OperationState &result) {
  OpAsmParser::UnresolvedOperand s;
  SmallVector<double> slopes;
  Type type;
  if (parser.parseOperand(s) || parser.parseKeyword("slopes") ||
      parseNumbers(parser, slopes) ||
      parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseColonType(type) ||
      parser.resolveOperand(s, type, result.operands))
    return failure();
  result.addAttribute(getSlopesAttrName(result.name),
                      parser.getBuilder().getDenseF64ArrayAttr(slopes));
  result.addTypes(type);
  return success();
}

void AlibiOp::print(OpAsmPrinter &printer) {
  printer << " " << getS() << " slopes ";
  printNumbers(printer, getSlopes());
  printer.printOptionalAttrDict((*this)->getAttrs(), {getSlopesAttrName()});
  printer << " : " << getS().getType();
}

LogicalResult AlibiOp::verify() {
  RankedTensorType s = getS().getType();
  if (failed(expectRankAtLeast(*this, "alibi-C1", "scores", s, 3)))
    return failure();
  return expectSlopes(*this, "alibi-C2", getSlopes(),
                      s.getDimSize(s.getRank() - 3));
}
