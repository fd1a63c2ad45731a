//===- FusedGemmVerifier.cpp - verifiers of fused_gemm and merge_argmax ---===//
//
// Constraint numbers are those of docs/Semantics.md.
//
//===----------------------------------------------------------------------===//
#include "Verify.h"

using namespace mlir;
using namespace gptc::gpt;

/// [fused_gemm-C2], [fused_gemm-C3]: the lists have one entry per weight or
/// section.
static LogicalResult verifyCounts(FusedGemmOp op) {
  size_t weights = op.getWeights().size();
  auto count = [&](StringRef rule, StringRef what, size_t got,
                   size_t expected) -> LogicalResult {
    if (got == expected)
      return success();
    return op.emitOpError() << "[" << rule << "] expected " << expected << " "
                            << what << ", got " << got;
  };
  if (weights == 0)
    return op.emitOpError()
           << "[fused_gemm-C2] expected at least one weight, got none";
  size_t sections = op.getLanes() ? 1 : weights;
  if (failed(count("fused_gemm-C2", "in_out flags (one per weight)",
                   op.getInOut().size(), weights)) ||
      failed(count("fused_gemm-C2", "has_bias flags (one per weight)",
                   op.getHasBias().size(), weights)) ||
      failed(count("fused_gemm-C2", "biases (as many as has_bias says)",
                   op.getBiases().size(),
                   llvm::count(op.getHasBias(), true))) ||
      failed(count("fused_gemm-C3",
                   op.getLanes() ? "epilogue of all lanes"
                                 : "epilogues (one per section)",
                   op.getEpilogues().size(), sections)) ||
      failed(count("fused_gemm-C3", "ropes (one per section)",
                   op.getRopes().size(), sections)) ||
      failed(count("fused_gemm-C3", "appends (one per section)",
                   op.getAppends().size(), sections)))
    return failure();
  for (Attribute rope : op.getRopes())
    if (!isa<UnitAttr, RopePairsAttr>(rope))
      return op.emitOpError()
             << "[fused_gemm-C3] expected ropes of rope_pairs or unit, got "
             << rope;
  for (Attribute append : op.getAppends())
    if (!isa<AppendAttr>(append))
      return op.emitOpError()
             << "[fused_gemm-C3] expected appends of gpt.append, got "
             << append;
  return success();
}

/// [fused_gemm-C1], [fused_gemm-C4]: shapes of x, weights and biases.
static LogicalResult verifyWeights(FusedGemmOp op) {
  RankedTensorType x = op.getX().getType();
  if (failed(expectRank(op, "fused_gemm-C1", "x", x, 2)))
    return failure();
  for (auto [i, weight] : llvm::enumerate(op.getWeights())) {
    auto type = cast<RankedTensorType>(weight.getType());
    std::string what = "weight " + std::to_string(i);
    if (failed(expectRank(op, "fused_gemm-C4", what, type, 2)))
      return failure();
    if (!type.hasStaticShape())
      return op.emitOpError() << "[fused_gemm-C4] expected " << what
                              << " of static shape, got " << type;
    int64_t in = type.getDimSize(op.getInOut()[i] ? 0 : 1);
    if (failed(expectDim(op, "fused_gemm-C4", "input features of " + what, in,
                         op.inFeatures())))
      return failure();
    if (op.getLanes() && op.outFeatures(i) != op.outFeatures(0))
      return op.emitOpError()
             << "[fused_gemm-C5] expected lanes of equal output features "
             << op.outFeatures(0) << ", got " << op.outFeatures(i) << " in "
             << what;
    if (Value bias = op.biasOf(i)) {
      auto biasType = cast<RankedTensorType>(bias.getType());
      if (biasType.getRank() != 1 ||
          biasType.getDimSize(0) != op.outFeatures(i))
        return op.emitOpError()
               << "[fused_gemm-C4] expected bias of " << what << " of shape ["
               << op.outFeatures(i) << "], got " << biasType;
    }
  }
  return success();
}

/// [fused_gemm-C14]: the norm of x's rows.
static LogicalResult verifyNorm(FusedGemmOp op) {
  auto present = [&](StringRef what, bool is, bool wanted) -> LogicalResult {
    if (is == wanted)
      return success();
    return op.emitOpError()
           << "[fused_gemm-C14] expected " << (wanted ? "" : "no ") << what
           << " with" << (op.getNorm() ? "" : "out") << " a norm, got "
           << (is ? "one" : "none");
  };
  bool wanted = op.getNorm().has_value();
  if (failed(present("gamma", !!op.getGamma(), wanted)) ||
      failed(present("eps", op.getEps().has_value(), wanted)) ||
      (!wanted && failed(present("beta", !!op.getBeta(), false))))
    return failure();
  if (!wanted)
    return success();
  if (op.getBeta() && *op.getNorm() == NormKind::Rms)
    return op.emitOpError()
           << "[fused_gemm-C14] expected no beta with the norm rms, got one";
  if (*op.getNorm() == NormKind::Sample && op.inFeatures() < 2)
    return op.emitOpError() << "[fused_gemm-C14] expected at least 2 input "
                               "features with the norm sample, got "
                            << op.inFeatures();
  for (Value vector : {op.getGamma(), op.getBeta()})
    if (vector && failed(expectShape(op, "fused_gemm-C14", "gamma and beta",
                                     cast<RankedTensorType>(vector.getType()),
                                     {op.inFeatures()})))
      return failure();
  return expectEps(op, "fused_gemm-C14", op.getEps()->convertToDouble());
}

/// [fused_gemm-C6]: the rope table and the sections that use it.
static LogicalResult verifyRopes(FusedGemmOp op) {
  bool wanted = llvm::any_of(
      op.getRopes(), [](Attribute rope) { return isa<RopePairsAttr>(rope); });
  if (op.getLanes() && wanted)
    return op.emitOpError()
           << "[fused_gemm-C5] expected no rope on lanes, got one";
  if (wanted != !!op.getRopeTable())
    return op.emitOpError()
           << "[fused_gemm-C6] expected "
           << (wanted ? "a rope table for the sections with a rope, got none"
                      : "no rope table without a rope, got one");
  if (!wanted && op.getRotary())
    return op.emitOpError() << "[fused_gemm-C13] expected no rotary channels "
                               "without a rope, got "
                            << static_cast<int64_t>(*op.getRotary());
  if (!wanted)
    return success();
  RankedTensorType table = op.getRopeTable().getType();
  if (failed(expectShape(
          op, "fused_gemm-C6", "a rope table", table,
          {op.getX().getType().getDimSize(0), 2, ShapedType::kDynamic})))
    return failure();
  int64_t dim = table.getDimSize(2);
  if (ShapedType::isDynamic(dim) || dim <= 0 || dim % 2 != 0)
    return op.emitOpError()
           << "[fused_gemm-C6] expected a rope table of a static, even head "
              "size, got "
           << table;
  for (unsigned i = 0; i < op.numSections(); ++i)
    if (op.ropeOf(i) && op.outFeatures(i) % dim != 0)
      return op.emitOpError()
             << "[fused_gemm-C6] expected the " << op.outFeatures(i)
             << " output features of section " << i << " to be whole heads of "
             << dim;
  return expectRotary(op, "fused_gemm-C13", op.getRotaryAttr(), dim);
}

/// [fused_gemm-C7]: the cache and the sections that append to it.
static LogicalResult verifyAppends(FusedGemmOp op) {
  unsigned keys = 0, values = 0;
  for (unsigned i = 0; i < op.getAppends().size(); ++i) {
    keys += op.appendOf(i) == Append::Keys;
    values += op.appendOf(i) == Append::Values;
  }
  bool wanted = keys + values != 0;
  if (op.getLanes() && wanted)
    return op.emitOpError()
           << "[fused_gemm-C5] expected no append on lanes, got one";
  if (keys > 1 || values > 1)
    return op.emitOpError() << "[fused_gemm-C7] expected at most one section "
                               "that appends keys and one that appends "
                               "values, got "
                            << keys << " and " << values;
  auto present = [&](StringRef what, bool is) -> LogicalResult {
    if (is == wanted)
      return success();
    return op.emitOpError()
           << "[fused_gemm-C7] expected " << (wanted ? "" : "no ") << what
           << (wanted ? " with a section that appends, got none"
                      : " without a section that appends, got one");
  };
  if (failed(present("cache", !!op.getCache())) ||
      failed(present("cache result", !!op.getCacheResult())) ||
      failed(present("positions", !!op.getPositions())) ||
      failed(present("sequences", !!op.getSequences())) ||
      failed(present("layer", op.getLayer().has_value())))
    return failure();
  if (!wanted)
    return success();
  KVCacheType cache = op.getCache().getType();
  if (op.getCacheResult().getType() != cache)
    return op.emitOpError()
           << "[fused_gemm-C7] expected a cache result of " << cache << ", got "
           << op.getCacheResult().getType();
  for (RankedTensorType ids :
       {op.getPositions().getType(), op.getSequences().getType()})
    if (ids.getDimSize(0) != op.getX().getType().getDimSize(0))
      return op.emitOpError()
             << "[fused_gemm-C7] expected positions and sequences of x's "
             << dimText(op.getX().getType().getDimSize(0)) << " rows, got "
             << ids;
  for (unsigned i = 0; i < op.numSections(); ++i) {
    if (op.appendOf(i) == Append::None)
      continue;
    if (failed(expectDim(op, "fused_gemm-C7",
                         "output features of section " + std::to_string(i) +
                             ", which appends,",
                         op.outFeatures(i),
                         cache.getHeads() * cache.getHeadDim())))
      return failure();
    if (op.ropeOf(i) &&
        op.getRopeTable().getType().getDimSize(2) != cache.getHeadDim())
      return op.emitOpError()
             << "[fused_gemm-C7] expected a rope table of the cache's head "
                "size "
             << cache.getHeadDim() << ", got " << op.getRopeTable().getType();
  }
  return expectLayer(op, "fused_gemm-C7", *op.getLayer(), cache);
}

/// [fused_gemm-C15]: the op beside an argmax.
static LogicalResult verifyArgmax(FusedGemmOp op) {
  if (!op.getArgmax())
    return success();
  // Whole vectors of every target, and a tile that fits its caches.
  if (int64_t block = *op.getArgmax();
      block < 16 || block > 4096 || !llvm::isPowerOf2_64(block))
    return op.emitOpError()
           << "[fused_gemm-C15] expected an argmax over blocks of a power of "
              "two from 16 to 4096 columns, got "
           << block;
  if (op.numSections() == 1 && !op.ropeOf(0) &&
      op.appendOf(0) == Append::None && op.numYields(0) == 1)
    return success();
  return op.emitOpError()
         << "[fused_gemm-C15] expected an argmax beside one section or lanes "
            "of one value, without rope and append, got "
         << op.numSections() << " sections, the first of " << op.numYields(0)
         << " values";
}

/// [fused_gemm-C8], [fused_gemm-C9]: outputs and residuals.
static LogicalResult verifyOutputs(FusedGemmOp op) {
  size_t expected = 0;
  for (int64_t i = 0; i < op.numSections(); ++i)
    expected += op.numOutputs(i);
  if (op.getOutputs().size() != expected)
    return op.emitOpError()
           << "[fused_gemm-C8] expected " << expected << " tensor results ("
           << (op.getArgmax() ? "numbers and columns of an argmax"
                              : "one per value of a section that it "
                                "does not append")
           << "), got " << op.getOutputs().size();
  int64_t rows = op.getX().getType().getDimSize(0);
  for (int64_t i = 0; i < op.numSections(); ++i)
    for (auto [j, output] : llvm::enumerate(op.outputsOf(i))) {
      auto type = cast<RankedTensorType>(output.getType());
      bool isColumns = op.getArgmax() && j == 1;
      if (type.getElementType().isF32() == isColumns)
        return op.emitOpError()
               << "[fused_gemm-C8] expected result " << j << " of section " << i
               << " of " << (isColumns ? "i32" : "f32") << ", got " << type;
      if (failed(expectShape(op, "fused_gemm-C8",
                             "a result of section " + std::to_string(i), type,
                             {rows, op.outColumns(i)})))
        return failure();
    }
  if (op.getResiduals().empty())
    return success();
  if (op.numSections() != 1 || op.appendOf(0) != Append::None)
    return op.emitOpError()
           << "[fused_gemm-C9] expected residuals beside one section or "
              "lanes, without a cache, got "
           << op.numSections() << " sections";
  auto matrix = cast<RankedTensorType>(op.getOutputs().front().getType());
  if (op.getArgmax()) // whose results have other columns
    matrix = matrix.clone({rows, op.outFeatures(0)});
  auto vector =
      RankedTensorType::get({op.outFeatures(0)}, matrix.getElementType());
  for (Value residual : op.getResiduals())
    if (residual.getType() != matrix && residual.getType() != vector)
      return op.emitOpError()
             << "[fused_gemm-C9] expected residuals of type " << matrix
             << " or " << vector << ", got " << residual.getType();
  return success();
}

/// [fused_gemm-C10] to [fused_gemm-C12]: one epilogue.
static LogicalResult verifyEpilogue(FusedGemmOp op, unsigned i) {
  Block &block = op.getEpilogues()[i].front();
  size_t expected = (op.getLanes() ? op.getWeights().size() : 1) +
                    (op.ropeOf(i) ? 3 : 0) + op.getResiduals().size();
  if (block.getNumArguments() != expected)
    return op.emitOpError()
           << "[fused_gemm-C10] expected epilogue " << i << " with " << expected
           << " arguments (accumulators, rope, residuals), got "
           << block.getNumArguments();
  for (BlockArgument argument : block.getArguments())
    if (!argument.getType().isF32())
      return op.emitOpError()
             << "[fused_gemm-C10] expected epilogue arguments of type f32, got "
             << argument.getType();
  for (Operation &inner : block.without_terminator()) {
    bool known = isa<GeluOp, SiluOp, SoftcapOp>(inner) ||
                 isa_and_nonnull<arith::ArithDialect, math::MathDialect>(
                     inner.getDialect());
    bool scalar =
        llvm::none_of(inner.getResultTypes(), llvm::IsaPred<ShapedType>);
    if (known && scalar && inner.getNumRegions() == 0)
      continue;
    InFlightDiagnostic diagnostic =
        op.emitOpError()
        << "[fused_gemm-C11] expected scalar arith, math, gpt.gelu, gpt.silu "
           "and gpt.softcap ops in an epilogue, got "
        << inner.getName();
    diagnostic.attachNote(inner.getLoc()) << "the op is here";
    return diagnostic;
  }
  auto yield = dyn_cast<YieldOp>(block.back());
  if (!yield || yield.getNumOperands() == 0 ||
      !llvm::all_of(yield.getOperandTypes(),
                    [](Type type) { return type.isF32(); }))
    return op.emitOpError()
           << "[fused_gemm-C12] expected epilogue " << i
           << " to end in a gpt.yield of f32 numbers, one or more";
  return success();
}

LogicalResult FusedGemmOp::verify() {
  if (failed(verifyCounts(*this)) || failed(verifyWeights(*this)) ||
      failed(verifyNorm(*this)) || failed(verifyRopes(*this)) ||
      failed(verifyAppends(*this)))
    return failure();
  for (unsigned i = 0; i < numSections(); ++i)
    if (failed(verifyEpilogue(*this, i)))
      return failure();
  if (failed(verifyArgmax(*this)))
    return failure();
  return verifyOutputs(*this);
}

LogicalResult MergeArgmaxOp::verify() {
  RankedTensorType values = getValues().getType();
  if (failed(expectRank(*this, "merge_argmax-C1", "values", values, 2)) ||
      failed(expectShape(*this, "merge_argmax-C2", "columns",
                         getColumns().getType(), values.getShape())))
    return failure();
  return expectShape(*this, "merge_argmax-C3", "a result",
                     getResult().getType(), values.getShape().drop_back());
}
