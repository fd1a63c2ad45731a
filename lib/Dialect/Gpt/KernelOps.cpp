//===- KernelOps.cpp - kernels and their calls ----------------------------===//
//
// `gpt.kernel @name(args) -> results schedule {...} { one op; gpt.return }`.
//
//===----------------------------------------------------------------------===//
#include "Verify.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;
using namespace gptc::gpt;

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name;
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<Type> resultTypes;
  SmallVector<DictionaryAttr> resultAttrs;
  bool isVariadic = false;
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name),
                             result.attributes) ||
      function_interface_impl::parseFunctionSignatureWithArguments(
          parser, /*allowVariadic=*/false, arguments, isVariadic, resultTypes,
          resultAttrs))
    return failure();
  SmallVector<Type> argumentTypes;
  for (const OpAsmParser::Argument &argument : arguments)
    argumentTypes.push_back(argument.type);
  Builder &builder = parser.getBuilder();
  result.addAttribute(
      getFunctionTypeAttrName(result.name),
      TypeAttr::get(builder.getFunctionType(argumentTypes, resultTypes)));
  call_interface_impl::addArgAndResultAttrs(
      builder, result, arguments, resultAttrs, getArgAttrsAttrName(result.name),
      getResAttrsAttrName(result.name));
  if (succeeded(parser.parseOptionalKeyword("schedule"))) {
    DictionaryAttr schedule;
    if (parser.parseAttribute(schedule))
      return failure();
    result.addAttribute(getScheduleAttrName(result.name), schedule);
  }
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  return parser.parseRegion(*result.addRegion(), arguments,
                            /*enableNameShadowing=*/true);
}

void KernelOp::print(OpAsmPrinter &printer) {
  printer << " ";
  printer.printSymbolName(getSymName());
  function_interface_impl::printFunctionSignature(
      printer, *this, getArgumentTypes(), /*isVariadic=*/false,
      getResultTypes());
  if (getScheduleAttr())
    printer << " schedule " << getScheduleAttr();
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(),
      {getSymNameAttrName(), getFunctionTypeAttrName(), getArgAttrsAttrName(),
       getResAttrsAttrName(), getScheduleAttrName()});
  printer << " ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}

static bool isConstant(Operation &op) {
  return op.hasTrait<OpTrait::ConstantLike>();
}

Operation *KernelOp::kernelOp() {
  for (Operation &op : getBody().front())
    if (!isConstant(op) && !op.hasTrait<OpTrait::IsTerminator>())
      return &op;
  return nullptr;
}

LogicalResult KernelOp::verify() {
  if (!getBody().hasOneBlock())
    return emitOpError() << "[kernel-C1] expected a body of one block, got "
                         << getBody().getBlocks().size();
  Block &body = getBody().front();
  auto end = body.empty() ? ReturnOp() : dyn_cast<ReturnOp>(body.back());
  if (!end)
    return emitOpError() << "[kernel-C1] expected the body to end in "
                            "gpt.return";
  if (!llvm::equal(end.getOperandTypes(), getResultTypes())) {
    InFlightDiagnostic diagnostic = emitOpError()
                                    << "[kernel-C2] expected to return ("
                                    << TypeRange(getResultTypes()) << "), got ("
                                    << end.getOperandTypes() << ")";
    diagnostic.attachNote(end.getLoc()) << "returned here";
    return diagnostic;
  }
  Operation *only = nullptr;
  for (Operation &op : body.without_terminator()) {
    if (isConstant(op))
      continue;
    if (only) {
      InFlightDiagnostic diagnostic =
          emitOpError() << "[kernel-C3] expected one op besides constants, got "
                           "another one, "
                        << op.getName();
      diagnostic.attachNote(only->getLoc()) << "the first one is here";
      return diagnostic;
    }
    only = &op;
  }
  if (!only)
    return emitOpError()
           << "[kernel-C3] expected one op besides constants, got none";
  return success();
}

LogicalResult CallOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto kernel =
      symbols.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
  if (!kernel)
    return emitOpError() << "[call-C1] expected the name of a gpt.kernel, got "
                         << getKernelAttr();
  FunctionType type = kernel.getFunctionType();
  auto complain = [&](StringRef what, TypeRange expected,
                      TypeRange got) -> LogicalResult {
    InFlightDiagnostic diagnostic = emitOpError()
                                    << "[call-C2] expected " << what << " ("
                                    << expected << "), got (" << got << ")";
    diagnostic.attachNote(kernel.getLoc()) << "the kernel is defined here";
    return diagnostic;
  };
  if (type.getInputs() != getOperandTypes())
    return complain("operands", type.getInputs(), getOperandTypes());
  if (type.getResults() != getResultTypes())
    return complain("results", type.getResults(), getResultTypes());
  return success();
}
