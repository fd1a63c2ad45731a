//===- FusedGemmPrinter.cpp - the printed form of gpt.fused_gemm ----------===//
//
// FusedGemmSyntax.cpp says what the form is, and reads it.
//
//===----------------------------------------------------------------------===//
#include "gptc/Dialect/Gpt/Gpt.h"

using namespace mlir;
using namespace gptc::gpt;

static void printWeight(OpAsmPrinter &printer, FusedGemmOp op, unsigned i) {
  printer << op.getWeights()[i] << " : " << op.getWeights()[i].getType();
  if (Value bias = op.biasOf(i))
    printer << " bias " << bias;
  if (op.getInOut()[i])
    printer << " in_out";
}

static void printEpilogue(OpAsmPrinter &printer, Region &region, bool mayOmit) {
  Block &block = region.front();
  auto yield = dyn_cast<YieldOp>(block.front());
  if (mayOmit && yield && yield.getNumOperands() == 1 &&
      yield.getOperand(0) == block.getArgument(0))
    return;
  printer << " epilogue (";
  llvm::interleaveComma(block.getArguments(), printer.getStream(),
                        [&](BlockArgument argument) {
                          printer.printRegionArgument(argument, {},
                                                      /*omitType=*/true);
                        });
  printer << ") ";
  printer.printRegion(region, /*printEntryBlockArgs=*/false);
}

static void printOutputs(OpAsmPrinter &printer, FusedGemmOp op, unsigned i) {
  ResultRange outputs = op.outputsOf(i);
  if (outputs.empty())
    return;
  printer << " -> ";
  if (outputs.size() == 1)
    printer << outputs.front().getType();
  else
    printer << "(" << outputs.getTypes() << ")";
}

static void printSection(OpAsmPrinter &printer, FusedGemmOp op, unsigned i) {
  printWeight(printer, op, i);
  if (std::optional<RopePairs> pairs = op.ropeOf(i))
    printer << " rope " << stringifyRopePairs(*pairs);
  if (op.appendOf(i) != Append::None)
    printer << " append " << stringifyAppend(op.appendOf(i));
  printEpilogue(printer, op.getEpilogues()[i], /*mayOmit=*/true);
  printOutputs(printer, op, i);
}

void FusedGemmOp::print(OpAsmPrinter &printer) {
  if (getNorm()) {
    printer << " norm(" << stringifyNormKind(*getNorm()) << " " << getGamma();
    if (getBeta())
      printer << ", " << getBeta();
    printer << " eps ";
    printExactly(printer.getStream(), getEps()->convertToDouble());
    printer << ")";
  }
  printer << " " << getX() << " : " << getX().getType();
  if (getPositions())
    printer << " at " << getPositions() << ", " << getSequences();
  if (getRopeTable())
    printer << " rope " << getRopeTable() << " : " << getRopeTable().getType();
  if (getRotary())
    printer << " rotary " << static_cast<int64_t>(*getRotary());
  if (getCache())
    printer << " cache " << getCache() << " : " << getCache().getType()
            << " layer " << static_cast<int64_t>(*getLayer());
  if (!getResiduals().empty()) {
    printer << " residual ";
    llvm::interleaveComma(getResiduals(), printer.getStream(), [&](Value r) {
      if (cast<RankedTensorType>(r.getType()).getRank() == 1)
        printer << "row ";
      printer << r;
    });
  }
  if (getArgmax())
    printer << " argmax " << static_cast<int64_t>(*getArgmax());
  if (getLanes()) {
    printer << " lanes (";
    for (unsigned i = 0; i < getWeights().size(); ++i) {
      if (i != 0)
        printer << ", ";
      printWeight(printer, *this, i);
    }
    printer << ")";
    printEpilogue(printer, getEpilogues().front(), /*mayOmit=*/false);
    printOutputs(printer, *this, 0);
  } else if (numSections() == 1) {
    printer << " section ";
    printSection(printer, *this, 0);
  } else {
    printer << " sections {";
    printer.increaseIndent();
    for (unsigned i = 0; i < getWeights().size(); ++i) {
      if (i != 0)
        printer << ",";
      printer.printNewline();
      printSection(printer, *this, i);
    }
    printer.decreaseIndent();
    printer.printNewline();
    printer << "}";
  }
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(),
      {"operandSegmentSizes", "resultSegmentSizes", getLanesAttrName(),
       getInOutAttrName(), getHasBiasAttrName(), getRopesAttrName(),
       getAppendsAttrName(), getLayerAttrName(), getRotaryAttrName(),
       getNormAttrName(), getEpsAttrName(), getArgmaxAttrName()});
}

void FusedGemmOp::getAsmBlockArgumentNames(Region &region,
                                           OpAsmSetValueNameFn setName) {
  if (region.empty())
    return;
  unsigned section = region.getRegionNumber();
  SmallVector<StringRef> names;
  if (getLanes())
    names.append(getWeights().size(), "acc");
  else
    names.push_back("acc");
  if (!getLanes() && ropeOf(section))
    names.append({"partner", "cos", "sin"});
  names.resize(std::max<size_t>(names.size(), region.getNumArguments()), "r");
  for (auto [argument, name] : llvm::zip(region.getArguments(), names))
    setName(argument, name);
}
