//===- GemmParts.cpp - a fused_gemm taken apart ---------------------------===//
#include "GemmParts.h"

using namespace mlir;
using namespace gptc;

LogicalResult gptc::isFusable(gpt::LinearOp op, Refuse refuse) {
  auto x = cast<RankedTensorType>(op.getX().getType());
  auto weight = cast<RankedTensorType>(op.getWeight().getType());
  if (x.getRank() != 2 || x.isDynamicDim(1))
    return refuse(op, "expected an activation [T, K] of static K");
  if (!weight.hasStaticShape())
    return refuse(op, "expected a weight of static shape");
  if (op.getType() != RankedTensorType::get({x.getDimSize(0), op.outFeatures()},
                                            x.getElementType()))
    return refuse(op, "expected a result with the rows of the activation");
  return success();
}

Value gptc::emitIdentity(OpBuilder &, Location, ArrayRef<Value> args) {
  return args[0];
}

Value gptc::cloneEpilogue(OpBuilder &builder, Region &region,
                          ArrayRef<Value> args) {
  IRMapping mapping;
  mapping.map(region.front().getArguments(), args);
  for (Operation &op : region.front().without_terminator())
    builder.clone(op, mapping);
  return mapping.lookupOrDefault(region.front().getTerminator()->getOperand(0));
}

bool gptc::isIdentity(Region &epilogue) {
  Block &block = epilogue.front();
  return block.getTerminator()->getOperand(0) == block.getArgument(0);
}

unsigned gptc::sectionOf(OpResult result) {
  auto op = cast<gpt::FusedGemmOp>(result.getOwner());
  for (unsigned i = 0, e = op.numSections(); i < e; ++i)
    if (op.outputOf(i) == result)
      return i;
  llvm_unreachable("the cache is not the output of a section");
}

GemmParts::GemmParts(gpt::FusedGemmOp op)
    : x(op.getX()), residuals(op.getResiduals()), ropeTable(op.getRopeTable()),
      positions(op.getPositions()), sequences(op.getSequences()),
      cache(op.getCache()), lanes(op.getLanes()) {
  if (auto attr = op.getLayerAttr())
    layer = attr.getInt();
  for (auto [i, weight] : llvm::enumerate(op.getWeights()))
    weights.push_back({weight, op.biasOf(i), op.getInOut()[i]});
  for (auto [i, region] : llvm::enumerate(op.getEpilogues())) {
    Region *source = &region;
    sections.push_back({[source](OpBuilder &b, Location, ArrayRef<Value> args) {
                          return cloneEpilogue(b, *source, args);
                        },
                        op.ropeOf(i), op.appendOf(i)});
  }
}

GemmParts::GemmParts(gpt::LinearOp op) : x(op.getX()) {
  addSection({op.getWeight(), op.getBias(), op.getInOut()});
}

void GemmParts::addSection(GemmWeight weight) {
  weights.push_back(weight);
  sections.push_back({emitIdentity, std::nullopt, gpt::Append::None});
}

gpt::FusedGemmOp GemmParts::create(OpBuilder &builder, Location loc) const {
  SmallVector<Value> weightValues, biases;
  SmallVector<bool> inOut, hasBias;
  SmallVector<int64_t> widths;
  for (const GemmWeight &w : weights) {
    weightValues.push_back(w.weight);
    if (w.bias)
      biases.push_back(w.bias);
    inOut.push_back(w.inOut);
    hasBias.push_back(static_cast<bool>(w.bias));
    widths.push_back(
        cast<RankedTensorType>(w.weight.getType()).getDimSize(w.inOut ? 1 : 0));
  }
  int64_t rows = cast<RankedTensorType>(x.getType()).getDimSize(0);
  SmallVector<Type> outputs;
  SmallVector<Attribute> ropes, appends;
  for (auto [i, section] : llvm::enumerate(sections)) {
    ropes.push_back(section.rope ? Attribute(gpt::RopePairsAttr::get(
                                       builder.getContext(), *section.rope))
                                 : Attribute(builder.getUnitAttr()));
    appends.push_back(
        gpt::AppendAttr::get(builder.getContext(), section.append));
    if (section.append == gpt::Append::None)
      outputs.push_back(
          RankedTensorType::get({rows, widths[i]}, builder.getF32Type()));
  }
  auto op = gpt::FusedGemmOp::create(
      builder, loc, outputs, cache ? cache.getType() : Type(), x, weightValues,
      biases, residuals, ropeTable, positions, sequences, cache,
      lanes ? builder.getUnitAttr() : UnitAttr(),
      builder.getDenseBoolArrayAttr(inOut),
      builder.getDenseBoolArrayAttr(hasBias), builder.getArrayAttr(ropes),
      builder.getArrayAttr(appends),
      layer ? builder.getI64IntegerAttr(*layer) : IntegerAttr(),
      sections.size());

  OpBuilder::InsertionGuard guard(builder);
  for (auto [i, section] : llvm::enumerate(sections)) {
    size_t count = (lanes ? weights.size() : 1) + (section.rope ? 3 : 0) +
                   residuals.size();
    SmallVector<Type> types(count, builder.getF32Type());
    // Arguments are named by their meaning, not after the GEMM.
    SmallVector<Location> locs(count, builder.getUnknownLoc());
    Block *block = builder.createBlock(&op.getEpilogues()[i], {}, types, locs);
    SmallVector<Value> args(block->getArguments());
    Value yielded = section.emit(builder, loc, args);
    gpt::YieldOp::create(builder, loc, yielded);
  }
  return op;
}

gpt::FusedGemmOp gptc::replaceGemm(RewriterBase &rewriter, gpt::FusedGemmOp op,
                                   const GemmParts &parts) {
  gpt::FusedGemmOp made = parts.create(rewriter, op.getLoc());
  for (unsigned i = 0, e = op.numSections(); i < e; ++i)
    if (Value old = op.outputOf(i))
      if (Value output = made.outputOf(i))
        rewriter.replaceAllUsesWith(old, output);
  if (Value old = op.getCacheResult())
    rewriter.replaceAllUsesWith(old, made.getCacheResult());
  return made;
}

bool gptc::isBefore(Value value, Operation *op) {
  if (value.getParentBlock() != op->getBlock())
    return false;
  Operation *definition = value.getDefiningOp();
  return !definition || definition->isBeforeInBlock(op);
}

bool gptc::canHoist(Value value, Operation *before) {
  if (isBefore(value, before))
    return true;
  Operation *op = value.getDefiningOp();
  return op && op->getBlock() == before->getBlock() &&
         isa<ml_program::GlobalLoadConstOp, arith::ConstantOp,
             tensor::ExtractSliceOp>(op) &&
         llvm::all_of(op->getOperands(),
                      [&](Value v) { return canHoist(v, before); });
}

void gptc::hoist(RewriterBase &rewriter, Value value, Operation *before) {
  Operation *op = value.getDefiningOp();
  if (!op || op->isBeforeInBlock(before))
    return;
  for (Value operand : op->getOperands())
    hoist(rewriter, operand, before);
  rewriter.moveOpBefore(op, before);
}
