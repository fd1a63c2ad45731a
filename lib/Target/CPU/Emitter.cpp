//===- Emitter.cpp - writes kernels as scf, vector and arith --------------===//
#include "Emitter.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cpu;

int64_t Emitter::lanesOf(Value v) {
  auto t = dyn_cast<VectorType>(v.getType());
  return t ? t.getDimSize(0) : 0;
}

Type Emitter::sameShape(Value like, Type element) {
  int64_t n = lanesOf(like);
  return n ? Type(vec(n, element)) : element;
}

Value Emitter::constInt(Type like, int64_t v) {
  if (auto vt = dyn_cast<VectorType>(like))
    return arith::ConstantOp::create(
        b, loc,
        DenseElementsAttr::get(vt, b.getIntegerAttr(vt.getElementType(), v)));
  return arith::ConstantOp::create(b, loc, b.getIntegerAttr(like, v));
}

Value Emitter::constFp(Type like, double v) {
  if (auto vt = dyn_cast<VectorType>(like))
    return arith::ConstantOp::create(
        b, loc,
        DenseElementsAttr::get(vt, b.getFloatAttr(vt.getElementType(), v)));
  return arith::ConstantOp::create(b, loc, b.getFloatAttr(like, v));
}

Value Emitter::infinity(Type like, bool negative) {
  double inf = std::numeric_limits<double>::infinity();
  return constFp(like, negative ? -inf : inf);
}

Value Emitter::add(Value x, Value y) {
  return b.createOrFold<arith::AddIOp>(loc, x, y);
}
Value Emitter::sub(Value x, Value y) {
  return b.createOrFold<arith::SubIOp>(loc, x, y);
}
Value Emitter::mul(Value x, Value y) {
  return b.createOrFold<arith::MulIOp>(loc, x, y);
}
Value Emitter::div(Value x, int64_t y) {
  return y == 1
             ? x
             : b.createOrFold<arith::DivUIOp>(loc, x, constInt(x.getType(), y));
}
Value Emitter::rem(Value x, int64_t y) {
  return y == 1
             ? constInt(x.getType(), 0)
             : b.createOrFold<arith::RemUIOp>(loc, x, constInt(x.getType(), y));
}
Value Emitter::min(Value x, Value y) {
  return b.createOrFold<arith::MinSIOp>(loc, x, y);
}
Value Emitter::max(Value x, Value y) {
  return b.createOrFold<arith::MaxSIOp>(loc, x, y);
}
Value Emitter::lt(Value x, Value y) {
  return b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::slt, x, y);
}
Value Emitter::le(Value x, Value y) {
  return b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::sle, x, y);
}
Value Emitter::eq(Value x, Value y) {
  return b.createOrFold<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, x, y);
}
Value Emitter::both(Value x, Value y) {
  return b.createOrFold<arith::AndIOp>(loc, x, y);
}
Value Emitter::select(Value c, Value x, Value y) {
  return b.createOrFold<arith::SelectOp>(loc, c, x, y);
}

Value Emitter::fadd(Value x, Value y) {
  return arith::AddFOp::create(b, loc, x, y);
}
Value Emitter::fsub(Value x, Value y) {
  return arith::SubFOp::create(b, loc, x, y);
}
Value Emitter::fmul(Value x, Value y) {
  return arith::MulFOp::create(b, loc, x, y);
}
Value Emitter::fdiv(Value x, Value y) {
  return arith::DivFOp::create(b, loc, x, y);
}
Value Emitter::fneg(Value x) { return arith::NegFOp::create(b, loc, x); }
Value Emitter::fsqrt(Value x) { return math::SqrtOp::create(b, loc, x); }
Value Emitter::fma(Value x, Value y, Value z) {
  if (target.fma)
    return math::FmaOp::create(b, loc, x, y, z);
  return fadd(fmul(x, y), z);
}
Value Emitter::flt(Value x, Value y) {
  return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, x, y);
}
Value Emitter::fmax(Value x, Value y) { return select(flt(y, x), x, y); }

Value Emitter::splat(Value scalar, int64_t lanes) {
  if (!lanes)
    return scalar;
  return vector::BroadcastOp::create(b, loc, vec(lanes, scalar.getType()),
                                     scalar);
}

Value Emitter::lane(Value v, int64_t i) {
  return lanesOf(v)
             ? Value(vector::ExtractOp::create(b, loc, v, ArrayRef<int64_t>{i}))
             : v;
}

Value Emitter::shuffle(Value x, Value y, ArrayRef<int64_t> mask) {
  return vector::ShuffleOp::create(b, loc, x, y, mask);
}

// Halves are combined until one lane is left.
static Value tree(Emitter &e, Value v,
                  function_ref<Value(Value, Value)> combine) {
  int64_t n = Emitter::lanesOf(v);
  if (!n)
    return v;
  while (n > 1) {
    SmallVector<int64_t> lo, hi;
    for (int64_t i = 0; i < n / 2; ++i) {
      lo.push_back(i);
      hi.push_back(n / 2 + i);
    }
    v = combine(e.shuffle(v, v, lo), e.shuffle(v, v, hi));
    n /= 2;
  }
  return e.lane(v, 0);
}
Value Emitter::laneSum(Value v) {
  return tree(*this, v, [&](Value x, Value y) { return fadd(x, y); });
}
Value Emitter::laneMax(Value v) {
  return tree(*this, v, [&](Value x, Value y) { return fmax(x, y); });
}

Value Emitter::at(Value base, Value byteOffset) {
  return LLVM::GEPOp::create(b, loc, ptr(), i8(), base,
                             ArrayRef<LLVM::GEPArg>{byteOffset});
}
Value Emitter::at(Value base, int64_t byteOffset) {
  return byteOffset ? at(base, cst(byteOffset)) : base;
}
Value Emitter::elem(Value base, Value index, int64_t size) {
  return at(base, mul(index, size));
}

Value Emitter::load(Type t, Value p) {
  return LLVM::LoadOp::create(b, loc, t, p, /*alignment=*/1);
}
void Emitter::store(Value v, Value p) {
  LLVM::StoreOp::create(b, loc, v, p, /*alignment=*/1);
}

Value Emitter::loadMasked(VectorType t, Value p, Value mask) {
  Value zero =
      isa<FloatType>(t.getElementType()) ? constFp(t, 0) : constInt(t, 0);
  return LLVM::MaskedLoadOp::create(b, loc, t, p, mask, zero, uint32_t(1));
}
void Emitter::storeMasked(Value v, Value p, Value mask) {
  LLVM::MaskedStoreOp::create(b, loc, v, p, mask, uint32_t(1));
}

Value Emitter::firstLanes(Value n, int64_t lanes) {
  SmallVector<int32_t> index;
  for (int64_t i = 0; i < lanes; ++i)
    index.push_back(i);
  Value ids = arith::ConstantOp::create(
      b, loc,
      DenseElementsAttr::get(vec(lanes, i32()), ArrayRef<int32_t>(index)));
  // Clamped before the narrowing, so that any n works.
  Value n32 =
      arith::TruncIOp::create(b, loc, i32(), max(min(n, cst(lanes)), cst(0)));
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, ids,
                               splat(n32, lanes));
}

void Emitter::loop(Value from, Value to, int64_t step,
                   function_ref<void(Value)> body) {
  auto op = scf::ForOp::create(b, loc, from, to, cst(step));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPoint(op.getBody()->getTerminator());
  body(op.getInductionVar());
}

Values Emitter::loop(Value from, Value to, int64_t step, ValueRange inits,
                     function_ref<Values(Value, ValueRange)> body) {
  if (inits.empty()) { // MLIR ends such loops itself
    loop(from, to, step, [&](Value i) { body(i, {}); });
    return {};
  }
  auto op = scf::ForOp::create(b, loc, from, to, cst(step), inits);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(op.getBody());
  Values next = body(op.getInductionVar(), op.getRegionIterArgs());
  scf::YieldOp::create(b, loc, next);
  return Values(op.getResults());
}

void Emitter::ifThen(Value c, Fn then, Fn otherwise) {
  auto op = scf::IfOp::create(b, loc, c, /*withElseRegion=*/bool(otherwise));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.thenBlock());
  then();
  if (otherwise) {
    b.setInsertionPointToStart(op.elseBlock());
    otherwise();
  }
}

Values Emitter::ifElse(Value c, ArrayRef<Type> types,
                       function_ref<Values()> then,
                       function_ref<Values()> otherwise) {
  if (types.empty()) {
    ifThen(c, [&] { then(); }, [&] { otherwise(); });
    return {};
  }
  auto op =
      scf::IfOp::create(b, loc, TypeRange(types), c, /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToEnd(op.thenBlock());
  scf::YieldOp::create(b, loc, then());
  b.setInsertionPointToEnd(op.elseBlock());
  scf::YieldOp::create(b, loc, otherwise());
  return Values(op.getResults());
}

void Emitter::call(StringRef name, ValueRange args,
                   function_ref<void(Emitter &, ValueRange)> make) {
  auto module =
      b.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  auto fn = module.lookupSymbol<func::FuncOp>(name);
  if (!fn) {
    OpBuilder inner = OpBuilder::atBlockEnd(module.getBody());
    fn = func::FuncOp::create(inner, loc, name,
                              b.getFunctionType(args.getTypes(), {}));
    fn.setPrivate();
    // One copy each: inlined into every kernel they would be most of the
    // compile time, and a call costs nothing beside its loop.
    fn->setAttr("passthrough", b.getStrArrayAttr({"noinline"}));
    inner.setInsertionPointToStart(fn.addEntryBlock());
    Emitter e(inner, loc, target);
    make(e, fn.getArguments());
    func::ReturnOp::create(inner, loc);
  }
  func::CallOp::create(b, loc, fn, args);
}

//===----------------------------------------------------------------------===//
// KernelContext
//===----------------------------------------------------------------------===//

Value KernelContext::arg(Emitter &e, unsigned i) {
  return e.load(e.ptr(), e.at(args, 8 * i));
}

ArrayRef<int64_t> KernelContext::shape(unsigned n) {
  auto all = cast<ArrayAttr>(kernel->getAttr("gpt.dims"));
  return cast<DenseI64ArrayAttr>(all[n]).asArrayRef();
}
unsigned KernelContext::rank(unsigned n) { return shape(n).size(); }

Value KernelContext::size(Emitter &e, unsigned n, unsigned i) {
  int64_t v = shape(n)[i];
  return v >= 0 ? e.cst(v) : e.load(e.i64(), e.at(dims, 8 * (-1 - v)));
}

Value KernelContext::rows(Emitter &e, unsigned n, unsigned keep) {
  Value product = e.cst(1);
  for (unsigned i = 0; i + keep < rank(n); ++i)
    product = e.mul(product, size(e, n, i));
  return product;
}

std::optional<gpt::Storage> KernelContext::storage(unsigned i) {
  auto attr = kernel.getArgAttrOfType<StringAttr>(i, "gpt.storage");
  return attr ? gpt::symbolizeStorage(attr.getValue()) : std::nullopt;
}

Value gptc::cpu::cutOf(Emitter &e, Value n, Value i, Value parts) {
  return arith::DivUIOp::create(e.b, e.loc, e.mul(n, i), parts);
}

std::pair<Value, Value> KernelContext::share(Emitter &e, Value n) {
  return {cutOf(e, n, thread, threads), cutOf(e, n, e.add(thread, 1), threads)};
}
