//===- Norms.cpp - syntax and verifiers of norms, scale, softcap, dropout -===//
//
// Their numbers are printed so that they read back to the same bits.
//
//===----------------------------------------------------------------------===//
#include "Verify.h"
#include <cmath>

using namespace mlir;
using namespace gptc::gpt;

static ParseResult parseNumber(OpAsmParser &parser, OperationState &result,
                               StringRef keyword, StringAttr name) {
  double value;
  if (parser.parseKeyword(keyword) || parser.parseFloat(value))
    return failure();
  result.addAttribute(name, parser.getBuilder().getF64FloatAttr(value));
  return success();
}

static void printNumber(OpAsmPrinter &printer, StringRef keyword,
                        double value) {
  printer << " " << keyword << " ";
  printExactly(printer.getStream(), value);
}

/// x `,` gamma (`,` beta)? `sample`? `eps` number attr-dict `:` types; the
/// result has x's type. `sampleName` is null where the word cannot stand.
static ParseResult parseNorm(OpAsmParser &parser, OperationState &result,
                             StringAttr epsName, StringAttr sampleName) {
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<Type> types;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseOperandList(operands))
    return failure();
  if (sampleName && succeeded(parser.parseOptionalKeyword("sample")))
    result.addAttribute(sampleName, parser.getBuilder().getUnitAttr());
  if (parseNumber(parser, result, "eps", epsName) ||
      parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseColonTypeList(types) ||
      parser.resolveOperands(operands, types, loc, result.operands))
    return failure();
  result.addTypes(types.front());
  return success();
}

static void printNorm(OpAsmPrinter &printer, Operation *op, double eps,
                      bool sample) {
  printer << " " << op->getOperands();
  if (sample)
    printer << " sample";
  printNumber(printer, "eps", eps);
  printer.printOptionalAttrDict(op->getAttrs(), {"eps", "sample"});
  printer << " : " << op->getOperandTypes();
}

ParseResult LayerNormOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseNorm(parser, result, getEpsAttrName(result.name),
                   getSampleAttrName(result.name));
}
void LayerNormOp::print(OpAsmPrinter &printer) {
  printNorm(printer, *this, getEps().convertToDouble(), getSample());
}

ParseResult RmsNormOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseNorm(parser, result, getEpsAttrName(result.name), {});
}
void RmsNormOp::print(OpAsmPrinter &printer) {
  printNorm(printer, *this, getEps().convertToDouble(), /*sample=*/false);
}

/// x keyword number attr-dict `:` type, which is also the result's.
static ParseResult parseUnary(OpAsmParser &parser, OperationState &result,
                              StringRef keyword, StringAttr name) {
  OpAsmParser::UnresolvedOperand x;
  Type type;
  if (parser.parseOperand(x) || parseNumber(parser, result, keyword, name) ||
      parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseColonType(type) ||
      parser.resolveOperand(x, type, result.operands))
    return failure();
  result.addTypes(type);
  return success();
}

static void printUnary(OpAsmPrinter &printer, Operation *op, StringRef keyword,
                       StringAttr name, double value) {
  printer << " " << op->getOperand(0);
  printNumber(printer, keyword, value);
  printer.printOptionalAttrDict(op->getAttrs(), {name.getValue()});
  printer << " : " << op->getOperand(0).getType();
}

ParseResult DropoutOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseUnary(parser, result, "p", getPAttrName(result.name));
}
void DropoutOp::print(OpAsmPrinter &printer) {
  printUnary(printer, *this, "p", getPAttrName(), getP().convertToDouble());
}

ParseResult ScaleOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseUnary(parser, result, "by", getFactorAttrName(result.name));
}
void ScaleOp::print(OpAsmPrinter &printer) {
  printUnary(printer, *this, "by", getFactorAttrName(),
             getFactor().convertToDouble());
}

ParseResult SoftcapOp::parse(OpAsmParser &parser, OperationState &result) {
  return parseUnary(parser, result, "at", getCapAttrName(result.name));
}
void SoftcapOp::print(OpAsmPrinter &printer) {
  printUnary(printer, *this, "at", getCapAttrName(),
             getCap().convertToDouble());
}

static LogicalResult verifyNorm(Operation *op, StringRef prefix,
                                RankedTensorType x, RankedTensorType gamma,
                                RankedTensorType beta, Type result,
                                double eps) {
  if (failed(expectRankAtLeast(op, (prefix + "-C1").str(), "x", x, 1)))
    return failure();
  if (x.isDynamicDim(x.getRank() - 1) || x.getShape().back() == 0)
    return op->emitOpError()
           << "[" << prefix
           << "-C1] expected a static last dimension of at least 1, got " << x;
  if (failed(expectShape(op, (prefix + "-C2").str(), "gamma", gamma,
                         {x.getShape().back()})) ||
      (beta && failed(expectShape(op, (prefix + "-C2").str(), "beta", beta,
                                  {x.getShape().back()}))))
    return failure();
  if (result != x)
    return op->emitOpError()
           << "[" << prefix << "-C3] expected a result of x's type " << x
           << ", got " << result;
  return expectEps(op, (prefix + "-C4").str(), eps);
}

LogicalResult LayerNormOp::verify() {
  if (failed(verifyNorm(*this, "layer_norm", getX().getType(),
                        getGamma().getType(),
                        getBeta() ? getBeta().getType() : RankedTensorType(),
                        getResult().getType(), getEps().convertToDouble())))
    return failure();
  if (getSample() && getX().getType().getShape().back() < 2)
    return emitOpError() << "[layer_norm-C5] expected a last dimension of at "
                            "least 2 beside sample, got "
                         << getX().getType();
  return success();
}

LogicalResult RmsNormOp::verify() {
  return verifyNorm(*this, "rms_norm", getX().getType(), getGamma().getType(),
                    {}, getResult().getType(), getEps().convertToDouble());
}

static InFlightDiagnostic complain(Operation *op, StringRef expected,
                                   double got) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printExactly(os, got);
  return op->emitOpError() << expected << ", got " << text;
}

LogicalResult DropoutOp::verify() {
  double p = getP().convertToDouble();
  if (p >= 0.0 && p < 1.0)
    return success();
  return complain(*this, "[dropout-C1] expected p of at least 0 and below 1",
                  p);
}

LogicalResult ScaleOp::verify() {
  double factor = getFactor().convertToDouble();
  if (std::isfinite(static_cast<float>(factor)))
    return success();
  return complain(*this, "[scale-C1] expected a factor that is finite in f32",
                  factor);
}

LogicalResult SoftcapOp::verify() {
  return expectCap(*this, "softcap-C1", getCap().convertToDouble());
}
