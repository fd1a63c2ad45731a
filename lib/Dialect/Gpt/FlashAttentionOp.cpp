//===- FlashAttentionOp.cpp - syntax and verifier -------------------------===//
//
// Dense:  %q, %k, %v causal scale 0.125 groups 3 : tq, tk
// Cached: %q cache %c at %pos, %seq layer 0 causal scale 0.125 groups 3
//           : tq, tcache
// v has k's type unless a third type says otherwise, the result q's unless
// `->` does; positions and sequences have one number for each row of q.
//
//===----------------------------------------------------------------------===//
#include "Verify.h"
#include <cmath>

using namespace mlir;
using namespace gptc::gpt;

static Type idsType(Type q, Builder &builder) {
  auto tensor = dyn_cast<RankedTensorType>(q);
  if (!tensor || tensor.getRank() == 0)
    return {};
  return RankedTensorType::get({tensor.getDimSize(0)}, builder.getI32Type());
}

ParseResult FlashAttentionOp::parse(OpAsmParser &parser,
                                    OperationState &result) {
  Builder &builder = parser.getBuilder();
  auto &properties = result.getOrAddProperties<Properties>();
  OpAsmParser::UnresolvedOperand q, k, v, cache, positions, sequences;
  if (parser.parseOperand(q))
    return failure();
  bool cached = succeeded(parser.parseOptionalKeyword("cache"));
  if (cached) {
    int64_t layer;
    if (parser.parseOperand(cache) || parser.parseKeyword("at") ||
        parser.parseOperand(positions) || parser.parseComma() ||
        parser.parseOperand(sequences) || parser.parseKeyword("layer") ||
        parser.parseInteger(layer))
      return failure();
    properties.layer = builder.getI64IntegerAttr(layer);
  } else if (parser.parseComma() || parser.parseOperand(k) ||
             parser.parseComma() || parser.parseOperand(v)) {
    return failure();
  }
  if (succeeded(parser.parseOptionalKeyword("causal")))
    properties.causal = builder.getUnitAttr();
  double scale;
  int64_t groups = 1;
  if (parser.parseKeyword("scale") || parser.parseFloat(scale))
    return failure();
  properties.scale = builder.getF64FloatAttr(scale);
  if (succeeded(parser.parseOptionalKeyword("groups")) &&
      parser.parseInteger(groups))
    return failure();
  properties.groups = builder.getI64IntegerAttr(groups);

  SmallVector<Type> types;
  Type resultType;
  if (parser.parseOptionalAttrDict(result.attributes))
    return failure();
  SMLoc typesLoc = parser.getNameLoc();
  if (parser.parseColonTypeList(types))
    return failure();
  if (succeeded(parser.parseOptionalArrow())) {
    if (parser.parseType(resultType))
      return failure();
  } else {
    resultType = types.front();
  }
  if (types.size() < 2 || types.size() > (cached ? 2 : 3))
    return parser.emitError(typesLoc) << "expected "
                                      << (cached ? "2 types (q, cache)"
                                                 : "2 or 3 types "
                                                   "(q, k, v)")
                                      << ", got " << types.size();
  if (parser.resolveOperand(q, types[0], result.operands))
    return failure();
  if (cached) {
    Type ids = idsType(types[0], builder);
    if (!ids)
      return parser.emitError(typesLoc)
             << "expected a ranked tensor as q, got " << types[0];
    if (parser.resolveOperand(cache, types[1], result.operands) ||
        parser.resolveOperand(positions, ids, result.operands) ||
        parser.resolveOperand(sequences, ids, result.operands))
      return failure();
  } else if (parser.resolveOperand(k, types[1], result.operands) ||
             parser.resolveOperand(v, types.back(), result.operands)) {
    return failure();
  }
  int dense = !cached;
  properties.operandSegmentSizes = {1, dense, dense, cached, cached, cached};
  result.addTypes(resultType);
  return success();
}

void FlashAttentionOp::print(OpAsmPrinter &printer) {
  raw_ostream &os = printer.getStream();
  printer << " " << getQ();
  if (getCache())
    printer << " cache " << getCache() << " at " << getPositions() << ", "
            << getSequences() << " layer " << static_cast<int64_t>(*getLayer());
  else
    printer << ", " << getK() << ", " << getV();
  if (getCausal())
    printer << " causal";
  printer << " scale ";
  printExactly(os, getScale().convertToDouble());
  if (getGroups() != 1)
    printer << " groups " << static_cast<int64_t>(getGroups());
  printer.printOptionalAttrDict(
      (*this)->getAttrs(),
      {"operandSegmentSizes", "layer", "causal", "scale", "groups"});
  printer << " : " << getQ().getType() << ", ";
  if (getCache())
    printer << getCache().getType();
  else
    printer << getK().getType();
  if (getV() && getV().getType() != getK().getType())
    printer << ", " << getV().getType();
  if (getResult().getType() != getQ().getType())
    printer << " -> " << getResult().getType();
}

static LogicalResult verifyDense(FlashAttentionOp op) {
  RankedTensorType q = op.getQ().getType(), k = op.getK().getType();
  int64_t rank = q.getRank(), groups = op.getGroups();
  if (failed(expectRankAtLeast(op, "flash_attention-C3", "q", q, 3)))
    return failure();
  int64_t heads = q.getDimSize(rank - 3);
  if (!ShapedType::isDynamic(heads) && heads % groups != 0)
    return op.emitOpError()
           << "[flash_attention-C2] expected groups to divide the " << heads
           << " heads of q, got " << groups;
  SmallVector<int64_t> expected(q.getShape());
  if (!ShapedType::isDynamic(heads))
    expected[rank - 3] = heads / groups;
  expected[rank - 2] = ShapedType::kDynamic;
  if (failed(expectShape(op, "flash_attention-C3", "k", k, expected)))
    return failure();
  if (static_cast<int64_t>(expected.size()) == k.getRank())
    expected[rank - 2] = k.getDimSize(rank - 2);
  return expectShape(op, "flash_attention-C3", "v", op.getV().getType(),
                     expected);
}

static LogicalResult verifyCached(FlashAttentionOp op) {
  RankedTensorType q = op.getQ().getType();
  KVCacheType cache = op.getCache().getType();
  if (failed(expectRank(op, "flash_attention-C4", "q", q, 2)))
    return failure();
  int64_t channels = q.getDimSize(1), groups = op.getGroups();
  int64_t group = cache.getHeads() * cache.getHeadDim();
  if (channels % group != 0 || channels / group != groups)
    return op.emitOpError()
           << "[flash_attention-C4] expected q with groups * "
           << cache.getHeads() << " heads of " << cache.getHeadDim()
           << " channels and groups = " << groups << ", got "
           << dimText(channels) << " channels";
  for (RankedTensorType ids :
       {op.getPositions().getType(), op.getSequences().getType()})
    if (ids.getDimSize(0) != q.getDimSize(0))
      return op.emitOpError()
             << "[flash_attention-C5] expected positions and sequences of q's "
             << dimText(q.getDimSize(0)) << " rows, got " << ids;
  if (!op.getCausal())
    return op.emitOpError()
           << "[flash_attention-C6] expected causal, since a token sees the "
              "cache up to its own position, got no causal";
  return expectLayer(op, "flash_attention-C7", *op.getLayer(), cache);
}

LogicalResult FlashAttentionOp::verify() {
  bool dense = getK() && getV() && !getCache() && !getPositions() &&
               !getSequences() && !getLayer();
  bool cached = !getK() && !getV() && getCache() && getPositions() &&
                getSequences() && getLayer();
  if (!dense && !cached)
    return emitOpError() << "[flash_attention-C1] expected k and v, or a "
                            "cache with positions, sequences and a layer, got "
                            "a mixture";
  if (static_cast<int64_t>(getGroups()) < 1)
    return emitOpError()
           << "[flash_attention-C2] expected groups of at least 1, got "
           << static_cast<int64_t>(getGroups());
  if (!std::isfinite(getScale().convertToDouble()))
    return emitOpError() << "[flash_attention-C8] expected a finite scale, got "
                         << getScaleAttr();
  if (failed(dense ? verifyDense(*this) : verifyCached(*this)))
    return failure();
  return expectShape(*this, "flash_attention-C9", "a result",
                     getResult().getType(), getQ().getType().getShape());
}
