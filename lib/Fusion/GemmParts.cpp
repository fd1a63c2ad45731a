//===- GemmParts.cpp - a fused_gemm taken apart ---------------------------===//
#include "GemmParts.h"
#include "gptc/Dialect/Gpt/WeightPart.h"

using namespace mlir;
using namespace gptc;

static std::string text(Type type) {
  std::string result;
  llvm::raw_string_ostream(result) << type;
  return result;
}

LogicalResult gptc::isFusable(gpt::LinearOp op, Refuse refuse) {
  auto x = cast<RankedTensorType>(op.getX().getType());
  auto weight = cast<RankedTensorType>(op.getWeight().getType());
  if (x.getRank() != 2 || x.isDynamicDim(1))
    return refuse(op, "expected an activation [T, K] of static K, got " +
                          text(x) +
                          "; pack the tokens of a batch into one dimension");
  if (!weight.hasStaticShape())
    return refuse(op, "expected a weight of static shape, got " + text(weight));
  if (op.getType() != RankedTensorType::get({x.getDimSize(0), op.outFeatures()},
                                            x.getElementType()))
    return refuse(op, "expected a result with the rows of the activation " +
                          text(x) + ", got " + text(op.getType()));
  return success();
}

bool gptc::isWeight(Value value) {
  if (Value whole = wholeOf(value.getDefiningOp()))
    value = whole;
  return value.getDefiningOp<ml_program::GlobalLoadConstOp>();
}

bool gptc::isWhole(Value value) {
  return isa<BlockArgument>(value) ||
         value.getDefiningOp<ml_program::GlobalLoadConstOp>();
}

/// The part of a weight or bias along `axis`.
static Value cut(OpBuilder &b, Location loc, Value value, int64_t axis,
                 PackedPart part) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  int64_t heads = shape[axis] / part.of;
  shape[axis] = heads * part.take;
  if (heads != 1)
    return gpt::HeadPartOp::create(
        b, loc, RankedTensorType::get(shape, type.getElementType()), value,
        axis, part.from, part.take, part.of);
  SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0)),
      strides(type.getRank(), b.getIndexAttr(1)), sizes;
  for (int64_t size : shape)
    sizes.push_back(b.getIndexAttr(size));
  offsets[axis] = b.getIndexAttr(part.from);
  return tensor::ExtractSliceOp::create(b, loc, value, offsets, sizes, strides);
}

GemmWeight gptc::partOf(OpBuilder &builder, Location loc,
                        const GemmWeight &weight, PackedPart part) {
  GemmWeight result = weight;
  result.weight = cut(builder, loc, weight.weight, weight.inOut ? 1 : 0, part);
  if (weight.bias)
    result.bias = cut(builder, loc, weight.bias, 0, part);
  return result;
}

GemmSection::Yields gptc::emitIdentity(OpBuilder &, Location,
                                       ArrayRef<Value> args) {
  return {args[0]};
}

GemmSection::Yields gptc::cloneEpilogue(OpBuilder &builder, Region &region,
                                        ArrayRef<Value> args) {
  IRMapping mapping;
  mapping.map(region.front().getArguments(), args);
  for (Operation &op : region.front().without_terminator())
    builder.clone(op, mapping);
  GemmSection::Yields yields;
  for (Value value : region.front().getTerminator()->getOperands())
    yields.push_back(mapping.lookupOrDefault(value));
  return yields;
}

bool gptc::isIdentity(Region &epilogue) {
  Block &block = epilogue.front();
  Operation *yield = block.getTerminator();
  return yield->getNumOperands() == 1 &&
         yield->getOperand(0) == block.getArgument(0);
}

GemmValue gptc::gemmValueOf(OpResult result) {
  auto op = cast<gpt::FusedGemmOp>(result.getOwner());
  for (unsigned i = 0, e = op.numSections(); i < e; ++i)
    for (auto [j, output] : llvm::enumerate(op.outputsOf(i)))
      if (output == result)
        return {i, static_cast<unsigned>(j) +
                       (op.appendOf(i) != gpt::Append::None)};
  llvm_unreachable("the cache is no value of a section");
}

/// The places that `loc` is made of. One that is marked is kept whole.
static void addPlaces(SmallVectorImpl<Location> &places, Location loc) {
  auto fused = dyn_cast<FusedLoc>(loc);
  if (!fused || fused.getMetadata())
    return places.push_back(loc);
  for (Location place : fused.getLocations())
    addPlaces(places, place);
}

Location gptc::fusedPlaces(MLIRContext *context, ArrayRef<Location> locs) {
  SmallVector<Location> places;
  for (Location loc : locs)
    addPlaces(places, loc);
  auto file = [](Location loc) {
    return loc->findInstanceOf<FileLineColLoc>();
  };
  bool ordered = llvm::all_of(places, [&](Location loc) {
    return file(loc) &&
           file(loc).getFilename() == file(places.front()).getFilename();
  });
  if (ordered) {
    // Equal places stay as they are given.
    SmallVector<std::tuple<unsigned, unsigned, unsigned>> keys;
    for (auto [i, place] : llvm::enumerate(places))
      keys.emplace_back(file(place).getLine(), file(place).getColumn(), i);
    llvm::sort(keys);
    SmallVector<Location> sorted;
    for (auto [line, column, i] : keys)
      sorted.push_back(places[i]);
    places = sorted;
  }
  return FusedLoc::get(context, places);
}

GemmParts::GemmParts(gpt::FusedGemmOp op)
    : x(op.getX()), residuals(op.getResiduals()), ropeTable(op.getRopeTable()),
      positions(op.getPositions()), sequences(op.getSequences()),
      cache(op.getCache()), norm(op.getNormAttr()), gamma(op.getGamma()),
      beta(op.getBeta()), eps(op.getEpsAttr()), rotary(op.getRotaryAttr()),
      argmax(op.getArgmaxAttr()), lanes(op.getLanes()), places{op.getLoc()} {
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

GemmParts::GemmParts(gpt::LinearOp op) : x(op.getX()), places{op.getLoc()} {
  addSection({op.getWeight(), op.getBias(), op.getInOut()});
}

void GemmParts::addSection(GemmWeight weight) {
  weights.push_back(weight);
  sections.push_back({emitIdentity, std::nullopt, gpt::Append::None});
}

gpt::FusedGemmOp GemmParts::create(OpBuilder &builder) const {
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
  MLIRContext *context = builder.getContext();
  Location loc = fusedPlaces(context, places);
  Type f32 = builder.getF32Type();
  int64_t rows = cast<RankedTensorType>(x.getType()).getDimSize(0);

  // The regions first: they say how many results there are.
  SmallVector<std::unique_ptr<Region>> regions;
  SmallVector<Type> outputs;
  SmallVector<Attribute> ropes, appends;
  for (auto [i, section] : llvm::enumerate(sections)) {
    ropes.push_back(section.rope ? Attribute(gpt::RopePairsAttr::get(
                                       context, *section.rope))
                                 : Attribute(builder.getUnitAttr()));
    appends.push_back(gpt::AppendAttr::get(context, section.append));
    size_t count = (lanes ? weights.size() : 1) + (section.rope ? 3 : 0) +
                   residuals.size();
    OpBuilder inside(context);
    // Arguments are named by their meaning, not after the GEMM.
    Block *block = inside.createBlock(
        regions.emplace_back(std::make_unique<Region>()).get(), {},
        SmallVector<Type>(count, f32),
        SmallVector<Location>(count, builder.getUnknownLoc()));
    GemmSection::Yields yields =
        section.emit(inside, loc, SmallVector<Value>(block->getArguments()));
    gpt::YieldOp::create(inside, loc, yields);
    size_t results = yields.size() - (section.append != gpt::Append::None);
    if (argmax) {
      int64_t blocks = llvm::divideCeil(widths[i], argmax.getInt());
      outputs.push_back(RankedTensorType::get({rows, blocks}, f32));
      outputs.push_back(
          RankedTensorType::get({rows, blocks}, builder.getI32Type()));
    } else {
      outputs.append(results, RankedTensorType::get({rows, widths[i]}, f32));
    }
  }
  auto op = gpt::FusedGemmOp::create(
      builder, loc, outputs, cache ? cache.getType() : Type(), x, weightValues,
      biases, residuals, ropeTable, positions, sequences, cache, gamma, beta,
      lanes ? builder.getUnitAttr() : UnitAttr(),
      builder.getDenseBoolArrayAttr(inOut),
      builder.getDenseBoolArrayAttr(hasBias), builder.getArrayAttr(ropes),
      builder.getArrayAttr(appends),
      layer ? builder.getI64IntegerAttr(*layer) : IntegerAttr(), rotary, norm,
      eps, argmax, sections.size());
  for (auto [region, made] : llvm::zip(op.getEpilogues(), regions))
    region.takeBody(*made);
  return op;
}

gpt::FusedGemmOp gptc::replaceGemm(RewriterBase &rewriter, gpt::FusedGemmOp op,
                                   const GemmParts &parts) {
  gpt::FusedGemmOp made = parts.create(rewriter);
  for (unsigned i = 0, e = op.numSections(); i < e; ++i)
    for (auto [old, output] : llvm::zip(op.outputsOf(i), made.outputsOf(i)))
      rewriter.replaceAllUsesWith(old, output);
  if (Value old = op.getCacheResult())
    rewriter.replaceAllUsesWith(old, made.getCacheResult());
  return made;
}

/// One GEMM; it is replaced if it has results that nothing uses.
static void dropUnusedResults(gpt::FusedGemmOp op) {
  if (op.getArgmax() || op.use_empty() ||
      llvm::none_of(op.getOutputs(),
                    [](Value output) { return output.use_empty(); }))
    return;
  IRRewriter rewriter(op);
  GemmParts parts(op);
  SmallVector<SmallVector<Value>> kept(parts.sections.size());
  for (auto [i, section] : llvm::enumerate(parts.sections)) {
    bool appends = section.append != gpt::Append::None;
    SmallVector<unsigned> yields;
    if (appends)
      yields.push_back(0);
    for (auto [j, output] : llvm::enumerate(op.outputsOf(i)))
      if (!output.use_empty()) {
        yields.push_back(j + appends);
        kept[i].push_back(output);
      }
    if (yields.empty()) { // a section yields something
      yields.push_back(0);
      kept[i].push_back(op.outputOf(i));
    }
    section.emit = [yields, inner = section.emit](OpBuilder &b, Location loc,
                                                  ArrayRef<Value> args) {
      GemmSection::Yields all = inner(b, loc, args), some;
      for (unsigned yield : yields)
        some.push_back(all[yield]);
      return some;
    };
  }
  gpt::FusedGemmOp made = parts.create(rewriter);
  for (auto [i, values] : llvm::enumerate(kept))
    for (auto [old, output] : llvm::zip(values, made.outputsOf(i)))
      rewriter.replaceAllUsesWith(old, output);
  if (Value old = op.getCacheResult())
    rewriter.replaceAllUsesWith(old, made.getCacheResult());
  rewriter.eraseOp(op);
  // What only the values that are gone needed.
  for (Region &region : made.getEpilogues())
    for (Operation &inner :
         llvm::make_early_inc_range(llvm::reverse(region.front())))
      if (isOpTriviallyDead(&inner))
        rewriter.eraseOp(&inner);
}

void gptc::dropUnusedResults(Operation *root) {
  SmallVector<Operation *> moves;
  root->walk([&](Operation *op) {
    if (isa<gpt::SplitHeadsOp>(op))
      moves.push_back(op);
  });
  for (Operation *op : moves)
    if (isOpTriviallyDead(op))
      op->erase();
  SmallVector<gpt::FusedGemmOp> gemms;
  root->walk([&](gpt::FusedGemmOp op) { gemms.push_back(op); });
  for (gpt::FusedGemmOp op : gemms)
    ::dropUnusedResults(op);
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
         (wholeOf(op) || isa<ml_program::GlobalLoadConstOp, arith::ConstantOp,
                             gpt::PositionsOp>(op)) &&
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
