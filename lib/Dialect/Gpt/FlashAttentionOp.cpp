//===- FlashAttentionOp.cpp - syntax and verifier -------------------------===//
//
// Dense:  %q, %k, %v causal scale 0.125 groups 3 : tq, tk
//         %q, %k, %v mask %m fill -1.0e9 causal window 256 scale 0.125
//           softcap 50.0 alibi [0.25, 0.5] groups 3 : tq, tk mask tm
//         %q, %k, %v mask %m, %n scale 0.125 : tq, tk mask tm, tn
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
  SmallVector<OpAsmParser::UnresolvedOperand> masks;
  auto number = [&](StringRef keyword, FloatAttr &attr) -> ParseResult {
    double value;
    if (failed(parser.parseOptionalKeyword(keyword)))
      return success();
    if (parser.parseFloat(value))
      return failure();
    attr = builder.getF64FloatAttr(value);
    return success();
  };
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
  bool masked = succeeded(parser.parseOptionalKeyword("mask"));
  if (masked &&
      (parser.parseOperandList(masks) || number("fill", properties.fill)))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("causal"))) {
    properties.causal = builder.getUnitAttr();
    int64_t window;
    if (succeeded(parser.parseOptionalKeyword("window"))) {
      if (parser.parseInteger(window))
        return failure();
      properties.window = builder.getI64IntegerAttr(window);
    }
  }
  double scale;
  int64_t groups = 1;
  if (parser.parseKeyword("scale") || parser.parseFloat(scale) ||
      number("softcap", properties.softcap))
    return failure();
  properties.scale = builder.getF64FloatAttr(scale);
  if (succeeded(parser.parseOptionalKeyword("alibi"))) {
    SmallVector<double> slopes;
    if (parseNumbers(parser, slopes))
      return failure();
    properties.alibi = builder.getDenseF64ArrayAttr(slopes);
  }
  if (succeeded(parser.parseOptionalKeyword("groups")) &&
      parser.parseInteger(groups))
    return failure();
  properties.groups = builder.getI64IntegerAttr(groups);

  SmallVector<Type> types, maskTypes;
  Type resultType;
  if (parser.parseOptionalAttrDict(result.attributes))
    return failure();
  SMLoc typesLoc = parser.getNameLoc();
  if (parser.parseColonTypeList(types))
    return failure();
  if (masked &&
      (parser.parseKeyword("mask") || parser.parseTypeList(maskTypes)))
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
  if (parser.resolveOperands(masks, maskTypes, typesLoc, result.operands))
    return failure();
  int dense = !cached, count = masks.size();
  properties.operandSegmentSizes = {1,      dense,  dense, cached,
                                    cached, cached, count};
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
  if (!getMasks().empty())
    printer << " mask " << getMasks();
  if (getFill()) {
    printer << " fill ";
    printExactly(os, getFill()->convertToDouble());
  }
  if (getCausal())
    printer << " causal";
  if (getWindow())
    printer << " window " << static_cast<int64_t>(*getWindow());
  printer << " scale ";
  printExactly(os, getScale().convertToDouble());
  if (getSoftcap()) {
    printer << " softcap ";
    printExactly(os, getSoftcap()->convertToDouble());
  }
  if (getAlibi()) {
    printer << " alibi ";
    printNumbers(printer, *getAlibi());
  }
  if (getGroups() != 1)
    printer << " groups " << static_cast<int64_t>(getGroups());
  printer.printOptionalAttrDict(
      (*this)->getAttrs(), {"operandSegmentSizes", "layer", "causal", "window",
                            "scale", "softcap", "alibi", "fill", "groups"});
  printer << " : " << getQ().getType() << ", ";
  if (getCache())
    printer << getCache().getType();
  else
    printer << getK().getType();
  if (getV() && getV().getType() != getK().getType())
    printer << ", " << getV().getType();
  if (!getMasks().empty())
    printer << " mask " << getMasks().getTypes();
  if (getResult().getType() != getQ().getType())
    printer << " -> " << getResult().getType();
}

static LogicalResult verifyDense(FlashAttentionOp op) {
  RankedTensorType q = op.getQ().getType(), k = op.getK().getType();
  int64_t rank = q.getRank(), groups = op.getGroups();
  if (failed(expectRankAtLeast(op, "flash_attention-C3", "q", q, 3)))
    return failure();
  if (q.isDynamicDim(rank - 1))
    return op.emitOpError() << "[flash_attention-C3] expected q with a static "
                               "head size, got "
                            << q;
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
  if (failed(expectShape(op, "flash_attention-C3", "v", op.getV().getType(),
                         expected)))
    return failure();
  SmallVector<int64_t> scores(q.getShape());
  scores.back() = expected[rank - 2];
  for (Type mask : op.getMasks().getTypes())
    if (failed(expectBroadcast(op, "flash_attention-C11", "a mask",
                               cast<RankedTensorType>(mask), scores)))
      return failure();
  return success();
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
  if (!op.getMasks().empty())
    return op.emitOpError() << "[flash_attention-C10] expected a mask in the "
                               "dense form only, got one over the cache";
  if (!op.getCausal())
    return op.emitOpError()
           << "[flash_attention-C6] expected causal, since a token sees the "
              "cache up to its own position, got no causal";
  return expectLayer(op, "flash_attention-C7", *op.getLayer(), cache);
}

/// [flash_attention-C12] to [flash_attention-C15]: what becomes of a score.
static LogicalResult verifyScores(FlashAttentionOp op) {
  if (op.getWindow() && !op.getCausal())
    return op.emitOpError()
           << "[flash_attention-C12] expected causal beside a window";
  if (failed(expectWindow(op, "flash_attention-C12", op.getWindowAttr())))
    return failure();
  if (op.getSoftcap() && failed(expectCap(op, "flash_attention-C13",
                                          op.getSoftcap()->convertToDouble())))
    return failure();
  RankedTensorType q = op.getQ().getType();
  int64_t heads = op.getCache() ? op.getCache().getType().getHeads() *
                                      static_cast<int64_t>(op.getGroups())
                                : q.getDimSize(q.getRank() - 3);
  if (op.getAlibi() &&
      failed(expectSlopes(op, "flash_attention-C14", *op.getAlibi(), heads)))
    return failure();
  RankedTensorType boolean;
  for (Type mask : op.getMasks().getTypes())
    if (getElementTypeOrSelf(mask).isInteger(1))
      boolean = cast<RankedTensorType>(mask);
  return expectFill(op, "flash_attention-C15", op.getFillAttr(), boolean);
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
  if (!std::isfinite(static_cast<float>(getScale().convertToDouble())))
    return emitOpError() << "[flash_attention-C8] expected a scale that is "
                            "finite in f32, got "
                         << getScaleAttr();
  if (failed(dense ? verifyDense(*this) : verifyCached(*this)) ||
      failed(verifyScores(*this)))
    return failure();
  return expectShape(*this, "flash_attention-C9", "a result",
                     getResult().getType(), getQ().getType().getShape());
}
