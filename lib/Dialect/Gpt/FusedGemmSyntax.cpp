//===- FusedGemmSyntax.cpp - assembly of gpt.fused_gemm -------------------===//
//
//   gpt.fused_gemm norm? %x : type (`at` %pos `,` %seq)?
//     (`rope` %cs `:` type (`rotary` int)?)? (`cache` %c `:` type `layer` int)?
//     (`residual` `row`? %r `,` ...)? (`argmax` int)? body
//     (`attributes` {...})?
//   norm    ::= `norm` `(` kind %gamma (`,` %beta)? `eps` number `)`
//   body    ::= `section` section | `sections` `{` section `,` ... `}`
//             | `lanes` `(` weight `,` ... `)` epilogue `->` types
//   section ::= weight (`rope` pairs)? (`append` keys-or-values)? epilogue?
//               (`->` types)?
//   types   ::= type | `(` type `,` ... `)`
//   weight  ::= %w `:` type (`bias` %b)? `in_out`?
//   epilogue ::= `epilogue` `(` %name `,` ... `)` { ops }
//
// A section without an epilogue yields its accumulator. What the operands'
// types leave open is not written: a bias has the output features of its
// weight, gamma and beta a row of x, positions and sequences one number a row,
// a residual the type of an output, or after `row` of a row of it. `->` stands
// exactly where a section has a tensor result.
//
//===----------------------------------------------------------------------===//
#include "gptc/Dialect/Gpt/Gpt.h"

using namespace mlir;
using namespace gptc::gpt;

using Unresolved = OpAsmParser::UnresolvedOperand;

namespace {
/// Everything read so far; operands are resolved once their types are known.
struct Reader {
  OpAsmParser &parser;
  OperationState &result;
  Builder &builder;

  Unresolved x, ropeTable, positions, sequences, cache;
  SmallVector<Unresolved, 2> norm; // gamma, beta
  Type xType, ropeTableType, cacheType;
  bool hasRope = false, hasIds = false, hasCache = false;
  SmallVector<Unresolved> weights, biases, residuals;
  SmallVector<Type> weightTypes, biasTypes, outputTypes;
  SmallVector<bool> inOut, hasBias, rowResidual;
  SmallVector<Attribute> ropes, appends;

  Reader(OpAsmParser &parser, OperationState &result)
      : parser(parser), result(result), builder(parser.getBuilder()) {}

  bool keyword(StringRef word) {
    return succeeded(parser.parseOptionalKeyword(word));
  }

  template <typename AttrT, typename Enum>
  ParseResult parseWord(std::optional<Enum> (*symbolize)(StringRef),
                        StringRef expected, Attribute &attribute) {
    StringRef word;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&word))
      return failure();
    std::optional<Enum> value = symbolize(word);
    if (!value)
      return parser.emitError(loc)
             << "expected " << expected << ", got " << word;
    attribute = AttrT::get(builder.getContext(), *value);
    return success();
  }

  ParseResult parseNorm();
  ParseResult parseHeader();
  ParseResult parseOutputs();
  ParseResult parseWeight();
  ParseResult parseEpilogue(unsigned accumulators, bool rope);
  ParseResult parseSection();
  ParseResult parseLanes();
  ParseResult parseBody();
  ParseResult resolve();
};
} // namespace

ParseResult Reader::parseNorm() {
  if (!keyword("norm"))
    return success();
  Attribute kind;
  double eps;
  if (parser.parseLParen() ||
      parseWord<NormKindAttr, NormKind>(symbolizeNormKind,
                                        "norm layer, sample or rms", kind) ||
      parser.parseOperand(norm.emplace_back()) ||
      (succeeded(parser.parseOptionalComma()) &&
       parser.parseOperand(norm.emplace_back())) ||
      parser.parseKeyword("eps") || parser.parseFloat(eps) ||
      parser.parseRParen())
    return failure();
  auto &properties = result.getOrAddProperties<FusedGemmOp::Properties>();
  properties.norm = cast<NormKindAttr>(kind);
  properties.eps = builder.getF64FloatAttr(eps);
  return success();
}

ParseResult Reader::parseHeader() {
  if (parseNorm() || parser.parseOperand(x) || parser.parseColonType(xType))
    return failure();
  if (keyword("at")) {
    hasIds = true;
    if (parser.parseOperand(positions) || parser.parseComma() ||
        parser.parseOperand(sequences))
      return failure();
  }
  if (keyword("rope")) {
    hasRope = true;
    if (parser.parseOperand(ropeTable) || parser.parseColonType(ropeTableType))
      return failure();
    int64_t rotary;
    if (keyword("rotary")) {
      if (parser.parseInteger(rotary))
        return failure();
      result.getOrAddProperties<FusedGemmOp::Properties>().rotary =
          builder.getI64IntegerAttr(rotary);
    }
  }
  if (keyword("cache")) {
    hasCache = true;
    int64_t layer;
    if (parser.parseOperand(cache) || parser.parseColonType(cacheType) ||
        parser.parseKeyword("layer") || parser.parseInteger(layer))
      return failure();
    result.getOrAddProperties<FusedGemmOp::Properties>().layer =
        builder.getI64IntegerAttr(layer);
  }
  if (keyword("residual") && parser.parseCommaSeparatedList([&] {
        rowResidual.push_back(keyword("row"));
        return parser.parseOperand(residuals.emplace_back());
      }))
    return failure();
  int64_t block;
  if (keyword("argmax")) {
    if (parser.parseInteger(block))
      return failure();
    result.getOrAddProperties<FusedGemmOp::Properties>().argmax =
        builder.getI64IntegerAttr(block);
  }
  return success();
}

/// One type, or several in parentheses.
ParseResult Reader::parseOutputs() {
  if (failed(parser.parseOptionalLParen()))
    return parser.parseType(outputTypes.emplace_back());
  return failure(parser.parseTypeList(outputTypes) || parser.parseRParen());
}

ParseResult Reader::parseWeight() {
  Type type;
  if (parser.parseOperand(weights.emplace_back()))
    return failure();
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseColonType(type))
    return failure();
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || tensor.getRank() != 2)
    return parser.emitError(loc) << "expected a weight of rank 2, got " << type;
  weightTypes.push_back(type);
  hasBias.push_back(keyword("bias"));
  if (hasBias.back() && parser.parseOperand(biases.emplace_back()))
    return failure();
  inOut.push_back(keyword("in_out"));
  if (hasBias.back())
    biasTypes.push_back(RankedTensorType::get(
        {tensor.getDimSize(inOut.back() ? 1 : 0)}, builder.getF32Type()));
  return success();
}

ParseResult Reader::parseEpilogue(unsigned accumulators, bool rope) {
  Region *region = result.addRegion();
  if (keyword("epilogue")) {
    SmallVector<OpAsmParser::Argument> arguments;
    if (parser.parseArgumentList(arguments, AsmParser::Delimiter::Paren))
      return failure();
    for (OpAsmParser::Argument &argument : arguments)
      argument.type = builder.getF32Type();
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseRegion(*region, arguments, /*enableNameShadowing=*/true))
      return failure();
    if (region->empty())
      return parser.emitError(loc) << "expected an epilogue with a gpt.yield, "
                                      "got none";
    return success();
  }
  Location loc = parser.getEncodedSourceLoc(parser.getCurrentLocation());
  Block &block = region->emplaceBlock();
  for (unsigned i = 0; i < accumulators + (rope ? 3 : 0) + residuals.size();
       ++i)
    block.addArgument(builder.getF32Type(), loc);
  OpBuilder inside(builder.getContext());
  inside.setInsertionPointToEnd(&block);
  YieldOp::create(inside, loc, ValueRange(block.getArgument(0)));
  return success();
}

ParseResult Reader::parseSection() {
  if (parseWeight())
    return failure();
  Attribute rope = builder.getUnitAttr();
  Attribute append = AppendAttr::get(builder.getContext(), Append::None);
  bool rotates = keyword("rope");
  if (rotates && parseWord<RopePairsAttr, RopePairs>(
                     symbolizeRopePairs, "rope half or adjacent", rope))
    return failure();
  if (keyword("append") &&
      parseWord<AppendAttr, Append>(symbolizeAppend, "append keys or values",
                                    append))
    return failure();
  ropes.push_back(rope);
  appends.push_back(append);
  if (parseEpilogue(1, rotates))
    return failure();
  if (succeeded(parser.parseOptionalArrow()))
    return parseOutputs();
  return success();
}

ParseResult Reader::parseLanes() {
  result.getOrAddProperties<FusedGemmOp::Properties>().lanes =
      builder.getUnitAttr();
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren,
                                     [&] { return parseWeight(); }))
    return failure();
  ropes.push_back(builder.getUnitAttr());
  appends.push_back(AppendAttr::get(builder.getContext(), Append::None));
  if (parseEpilogue(weights.size(), false) || parser.parseArrow())
    return failure();
  return parseOutputs();
}

ParseResult Reader::parseBody() {
  if (keyword("lanes"))
    return parseLanes();
  if (keyword("section"))
    return parseSection();
  if (keyword("sections"))
    return parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces,
                                          [&] { return parseSection(); });
  return parser.emitError(parser.getCurrentLocation())
         << "expected section, sections or lanes";
}

ParseResult Reader::resolve() {
  SMLoc loc = parser.getNameLoc();
  auto &operands = result.operands;
  auto rows = dyn_cast<RankedTensorType>(xType);
  if (!rows || rows.getRank() != 2)
    return parser.emitError(loc) << "expected x of rank 2, got " << xType;
  Type ids = RankedTensorType::get({rows.getDimSize(0)}, builder.getI32Type());
  if (!residuals.empty() && outputTypes.empty())
    return parser.emitError(loc)
           << "expected an output beside the residuals, got none";
  if (parser.resolveOperand(x, xType, operands) ||
      parser.resolveOperands(weights, weightTypes, loc, operands) ||
      parser.resolveOperands(biases, biasTypes, loc, operands))
    return failure();
  for (auto [residual, row] : llvm::zip(residuals, rowResidual)) {
    Type type = outputTypes.front();
    if (result.getOrAddProperties<FusedGemmOp::Properties>().argmax) {
      // Results have a column for a block.
      auto weight = cast<RankedTensorType>(weightTypes.front());
      type = RankedTensorType::get(
          {rows.getDimSize(0), weight.getDimSize(inOut.front() ? 1 : 0)},
          builder.getF32Type());
    }
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (row && tensor && tensor.getRank() == 2)
      type = RankedTensorType::get({tensor.getDimSize(1)},
                                   tensor.getElementType());
    if (parser.resolveOperand(residual, type, operands))
      return failure();
  }
  if ((hasRope && parser.resolveOperand(ropeTable, ropeTableType, operands)) ||
      (hasIds && (parser.resolveOperand(positions, ids, operands) ||
                  parser.resolveOperand(sequences, ids, operands))) ||
      (hasCache && parser.resolveOperand(cache, cacheType, operands)))
    return failure();
  Type row = RankedTensorType::get({rows.getDimSize(1)}, rows.getElementType());
  for (Unresolved &vector : norm)
    if (parser.resolveOperand(vector, row, operands))
      return failure();

  auto size = [](auto &list) { return static_cast<int32_t>(list.size()); };
  auto &properties = result.getOrAddProperties<FusedGemmOp::Properties>();
  properties.operandSegmentSizes = {
      1,      size(weights), size(biases), size(residuals), hasRope,
      hasIds, hasIds,        hasCache,     !norm.empty(),   norm.size() == 2};
  properties.resultSegmentSizes = {size(outputTypes), hasCache};
  properties.in_out = builder.getDenseBoolArrayAttr(inOut);
  properties.has_bias = builder.getDenseBoolArrayAttr(hasBias);
  properties.ropes = builder.getArrayAttr(ropes);
  properties.appends = builder.getArrayAttr(appends);
  result.addTypes(outputTypes);
  if (hasCache)
    result.addTypes(cacheType);
  return success();
}

ParseResult FusedGemmOp::parse(OpAsmParser &parser, OperationState &result) {
  Reader reader(parser, result);
  if (reader.parseHeader() || reader.parseBody() ||
      parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  return reader.resolve();
}
