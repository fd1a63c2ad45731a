//===- ScoreKernels.cpp - masks, alibi, broadcasts ------------------------===//
//
// Of the unfused path, and what the fused attention shares with it: where the
// row of a mask lies, and what becomes of a vector of scores. Both paths write
// the same formulas, so that only the order of sums is different.
//
//===----------------------------------------------------------------------===//
#include "SimpleKernels.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cpu;

Value gptc::cpu::constantWords(Emitter &e, StringRef name,
                               DenseElementsAttr values) {
  auto module =
      e.b.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  SmallVector<int32_t> words;
  auto add = [&](const auto &each) {
    using T = std::decay_t<decltype(each)>;
    if constexpr (std::is_same_v<T, APFloat>)
      words.push_back(
          static_cast<int32_t>(each.bitcastToAPInt().getZExtValue()));
    else
      words.push_back(static_cast<int32_t>(each.getZExtValue()));
  };
  bool isFloat = isa<FloatType>(values.getElementType());
  // A splat is one word, whatever its shape.
  if (values.isSplat() && isFloat)
    add(values.getSplatValue<APFloat>());
  else if (values.isSplat())
    add(values.getSplatValue<APInt>());
  else if (isFloat)
    llvm::for_each(values.getValues<APFloat>(), add);
  else
    llvm::for_each(values.getValues<APInt>(), add);
  auto type = LLVM::LLVMArrayType::get(e.i32(), words.size());
  OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
  std::string unique = name.str(); // a kernel may have several
  for (int n = 2; module.lookupSymbol(unique); ++n)
    unique = name.str() + std::to_string(n);
  LLVM::GlobalOp::create(
      top, e.loc, type, /*isConstant=*/true, LLVM::Linkage::Internal, unique,
      DenseElementsAttr::get(
          RankedTensorType::get({int64_t(words.size())}, e.i32()),
          ArrayRef<int32_t>(words)));
  return LLVM::AddressOfOp::create(e.b, e.loc, e.ptr(), unique);
}

Repeated::Repeated(Emitter &e, KernelContext &c, Value operand) {
  if (auto argument = dyn_cast<BlockArgument>(operand)) {
    unsigned n = argument.getArgNumber();
    base = c.arg(e, n);
    for (auto [i, extent] : llvm::enumerate(c.shape(n))) {
      sizes.push_back(c.size(e, n, i));
      ones.push_back(extent == 1);
    }
    return;
  }
  DenseElementsAttr values;
  matchPattern(operand, m_Constant(&values));
  base = constantWords(e, (c.kernel.getSymName() + "_constant").str(), values);
  for (int64_t extent : cast<ShapedType>(values.getType()).getShape()) {
    bool one = extent == 1 || values.isSplat();
    sizes.push_back(e.cst(one ? 1 : extent));
    ones.push_back(one);
  }
}

Value Repeated::row(Emitter &e, Value r, ArrayRef<Value> shape) const {
  Value offset = e.cst(0);
  if (sizes.empty())
    return offset;
  Value stride = sizes.back();
  size_t skip = shape.size() - sizes.size();
  for (size_t d = shape.size() - 1; d-- > skip;) {
    bool first = d == 0;
    if (!ones[d - skip]) {
      Value index =
          first ? r : Value(arith::RemUIOp::create(e.b, e.loc, r, shape[d]));
      offset = e.add(offset, e.mul(index, stride));
    }
    stride = e.mul(stride, sizes[d - skip]);
    if (!first)
      r = arith::DivUIOp::create(e.b, e.loc, r, shape[d]);
  }
  return offset;
}

Value Repeated::load(Emitter &e, Type element, Value row, Value column,
                     Value lanes) const {
  if (sizes.empty() || ones.back())
    return e.splat(loadWord(e, element, e.elem(base, row)), e.target.lanes);
  return loadWords(e, element, e.elem(base, e.add(row, column)), lanes);
}

//===----------------------------------------------------------------------===//
// What becomes of a vector of scores
//===----------------------------------------------------------------------===//

Value gptc::cpu::emitMasked(Emitter &e, Value s, Value mask,
                            std::optional<double> fill) {
  if (isa<FloatType>(getElementTypeOrSelf(mask.getType())))
    return e.fadd(s, mask);
  return e.select(mask, s,
                  fill ? e.constFp(s.getType(), *fill)
                       : e.infinity(s.getType(), true));
}

// Positions are below 2^24, so distances are exact.
Value gptc::cpu::emitAlibiBias(Emitter &e, Value s, Value slope,
                               Value distance) {
  const int64_t lanes = e.target.lanes;
  SmallVector<int32_t> index;
  for (int64_t i = 0; i < lanes; ++i)
    index.push_back(i);
  Type it = e.vec(e.i32());
  Value ids = arith::ConstantOp::create(
      e.b, e.loc,
      DenseElementsAttr::get(cast<ShapedType>(it), ArrayRef<int32_t>(index)));
  Value from = arith::TruncIOp::create(e.b, e.loc, e.i32(), distance);
  Value far = arith::SIToFPOp::create(
      e.b, e.loc, e.vec(e.f32()),
      Value(arith::AddIOp::create(e.b, e.loc, e.splat(from, lanes), ids)));
  return e.fma(e.splat(slope, lanes), far, s);
}

Value gptc::cpu::visibleLanes(Emitter &e, Value visible,
                              std::optional<int64_t> window) {
  Value lanes = e.firstLanes(visible, e.target.lanes);
  if (!window)
    return lanes;
  Value before = e.firstLanes(e.sub(visible, *window), e.target.lanes);
  // before is within lanes.
  return arith::XOrIOp::create(e.b, e.loc, lanes, before);
}

std::optional<int64_t>
gptc::cpu::windowOf(const std::optional<uint64_t> &window) {
  return window && *window <= INT32_MAX ? std::optional<int64_t>(*window)
                                        : std::nullopt;
}

std::optional<double> gptc::cpu::asDouble(const std::optional<APFloat> &x) {
  return x ? std::optional(x->convertToDouble()) : std::nullopt;
}

Value gptc::cpu::constantSlopes(Emitter &e, KernelContext &c,
                                ArrayRef<double> slopes) {
  SmallVector<float> rounded(slopes.begin(), slopes.end());
  auto type = RankedTensorType::get({int64_t(rounded.size())}, e.f32());
  auto module =
      e.b.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  OpBuilder top = OpBuilder::atBlockBegin(module.getBody());
  std::string name = (c.kernel.getSymName() + "_slopes").str();
  LLVM::GlobalOp::create(
      top, e.loc, LLVM::LLVMArrayType::get(e.f32(), rounded.size()),
      /*isConstant=*/true, LLVM::Linkage::Internal, name,
      DenseElementsAttr::get(type, ArrayRef<float>(rounded)));
  return LLVM::AddressOfOp::create(e.b, e.loc, e.ptr(), name);
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static SmallVector<Value> sizesOf(Emitter &e, KernelContext &c, unsigned n) {
  SmallVector<Value> sizes;
  for (unsigned i = 0; i < c.rank(n); ++i)
    sizes.push_back(c.size(e, n, i));
  return sizes;
}

/// out[r][j] = f(s[r][j]) with the row's number within its [Sq, Sk] matrix.
static void mapScores(
    Emitter &e, KernelContext &c,
    function_ref<Value(Value s, Value row, Value i, Value col, Value mask)> f) {
  Value sq = c.size(e, 0, c.rank(0) - 2), sk = c.size(e, 0, c.rank(0) - 1);
  Value x = c.arg(e, 0), out = c.result(e, 0);
  forShare(e, c, c.rows(e, 0), [&](Value r) {
    Value i = arith::RemUIOp::create(e.b, e.loc, r, sq);
    Value base = e.mul(r, sk);
    forColumns(e, sk, [&](Value col, Value mask) {
      Value at = e.add(base, col);
      storeVector(e, f(loadVector(e, e.elem(x, at), mask), r, i, col, mask),
                  e.elem(out, at), mask);
    });
  });
}

void gptc::cpu::emitCausalMask(Emitter &e, KernelContext &c,
                               gpt::CausalMaskOp op) {
  Value shift = e.sub(c.size(e, 0, c.rank(0) - 1), c.size(e, 0, c.rank(0) - 2));
  mapScores(e, c, [&](Value s, Value, Value i, Value col, Value) {
    Value visible =
        e.add(e.sub(e.add(i, shift), col), 1); // of this vector's keys
    return e.select(visibleLanes(e, visible, windowOf(op.getWindow())), s,
                    e.infinity(s.getType(), true));
  });
}

void gptc::cpu::emitAlibi(Emitter &e, KernelContext &c, gpt::AlibiOp op) {
  Value sq = c.size(e, 0, c.rank(0) - 2);
  Value shift = e.sub(c.size(e, 0, c.rank(0) - 1), sq);
  Value slopes = constantSlopes(e, c, op.getSlopes());
  mapScores(e, c, [&](Value s, Value r, Value i, Value col, Value) {
    Value head =
        e.rem(arith::DivUIOp::create(e.b, e.loc, r, sq), op.getSlopes().size());
    return emitAlibiBias(e, s, e.load(e.f32(), e.elem(slopes, head)),
                         e.sub(col, e.add(i, shift)));
  });
}

void gptc::cpu::emitMask(Emitter &e, KernelContext &c, gpt::MaskOp op) {
  Repeated mask(e, c, op.getMask());
  SmallVector<Value> shape = sizesOf(e, c, 0);
  Type element = getElementTypeOrSelf(op.getMask().getType());
  mapScores(e, c, [&](Value s, Value r, Value, Value col, Value lanes) {
    Value m = mask.load(e, element, mask.row(e, r, shape), col, lanes);
    return emitMasked(e, s, m, asDouble(op.getFill()));
  });
}

void gptc::cpu::emitBroadcast(Emitter &e, KernelContext &c,
                              gpt::BroadcastOp op) {
  // The result follows the arguments, of which a constant is none.
  const unsigned result = c.kernel.getArgumentTypes().size();
  Repeated x(e, c, op.getX());
  SmallVector<Value> shape = sizesOf(e, c, result);
  Value out = c.result(e, 0);
  Type element = getElementTypeOrSelf(op.getX().getType());
  if (shape.empty())
    return forShare(e, c, e.cst(1),
                    [&](Value) { e.store(e.load(e.i32(), x.base), out); });
  forShare(e, c, c.rows(e, result), [&](Value r) {
    Value from = x.row(e, r, shape), to = e.mul(r, shape.back());
    forColumns(e, shape.back(), [&](Value col, Value lanes) {
      storeWords(e, x.load(e, element, from, col, lanes),
                 e.elem(out, e.add(to, col)), lanes);
    });
  });
}
