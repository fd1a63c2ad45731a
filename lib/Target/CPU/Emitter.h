//===- Emitter.h - writes kernels as scf, vector and arith ------*- C++ -*-===//
//
// A thin layer over OpBuilder in which the kernel generators are written:
// addresses are !llvm.ptr plus byte offsets, integers i64, floats f32 or
// vector<Nxf32>. It decides nothing about schedules.
//
//===----------------------------------------------------------------------===//
#pragma once
#include "gptc/Dialect/Gpt/Gpt.h"
#include "gptc/Schedule/Target.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/Builders.h"

namespace gptc::cpu {

using mlir::Type;
using mlir::Value;
using mlir::ValueRange;
using Values = llvm::SmallVector<Value>;
using Fn = llvm::function_ref<void()>;

class Emitter {
public:
  Emitter(mlir::OpBuilder &b, mlir::Location loc, const TargetDesc &target)
      : b(b), loc(loc), target(target) {}

  mlir::OpBuilder &b;
  mlir::Location loc;
  const TargetDesc &target;

  // Types.
  Type i1() { return b.getI1Type(); }
  Type i8() { return b.getI8Type(); }
  Type i32() { return b.getI32Type(); }
  Type i64() { return b.getI64Type(); }
  Type f32() { return b.getF32Type(); }
  Type f64() { return b.getF64Type(); }
  Type ptr() { return mlir::LLVM::LLVMPointerType::get(b.getContext()); }
  mlir::VectorType vec(int64_t n, Type t) {
    return mlir::VectorType::get({n}, t);
  }
  mlir::VectorType vec(Type t) { return vec(target.lanes, t); }

  // Constants. `like` is the scalar or vector type of the result.
  Value cst(int64_t v) { return constInt(i64(), v); }
  Value constInt(Type like, int64_t v);
  Value constFp(Type like, double v);
  Value infinity(Type like, bool negative);

  // i64 arithmetic, folded when constant.
  Value add(Value x, Value y);
  Value sub(Value x, Value y);
  Value mul(Value x, Value y);
  Value add(Value x, int64_t y) { return y ? add(x, cst(y)) : x; }
  Value sub(Value x, int64_t y) { return y ? sub(x, cst(y)) : x; }
  Value mul(Value x, int64_t y) { return y == 1 ? x : mul(x, cst(y)); }
  Value div(Value x, int64_t y); ///< floor, x >= 0
  Value rem(Value x, int64_t y);
  Value ceilDiv(Value x, int64_t y) { return div(add(x, y - 1), y); }
  Value min(Value x, Value y);
  Value max(Value x, Value y);
  Value lt(Value x, Value y); ///< signed i64
  Value le(Value x, Value y);
  Value eq(Value x, Value y);
  Value both(Value x, Value y); ///< i1 and
  Value select(Value c, Value x, Value y);

  // Floats and float vectors. fma is one rounding where the target has it.
  Value fadd(Value x, Value y);
  Value fsub(Value x, Value y);
  Value fmul(Value x, Value y);
  Value fdiv(Value x, Value y);
  Value fma(Value x, Value y, Value z);
  Value fneg(Value x);
  Value fsqrt(Value x);
  Value flt(Value x, Value y);              ///< ordered <, lane-wise
  Value fmax(Value x, Value y);             ///< x > y ? x : y
  Value splat(Value scalar, int64_t lanes); ///< lanes == 0: the scalar itself
  Value lane(Value v, int64_t i);
  Value laneSum(Value v); ///< a fixed tree, so that bits never depend on the
                          ///< target's reduction
  Value laneMax(Value v);
  Value shuffle(Value x, Value y, llvm::ArrayRef<int64_t> mask);

  // Memory. Offsets in bytes. Alignment 1 unless given (unaligned vector moves
  // cost nothing on aligned data).
  Value at(Value base, Value byteOffset);
  Value at(Value base, int64_t byteOffset);
  /// base + index * size, in elements of `size` bytes.
  Value elem(Value base, Value index, int64_t size = 4);
  Value load(Type t, Value p);
  void store(Value v, Value p);
  Value loadMasked(mlir::VectorType t, Value p, Value mask); ///< other lanes 0
  void storeMasked(Value v, Value p, Value mask);
  /// Lanes i with i < n.
  Value firstLanes(Value n, int64_t lanes);

  // Control flow.
  void loop(Value from, Value to, int64_t step,
            llvm::function_ref<void(Value)> body);
  Values loop(Value from, Value to, int64_t step, ValueRange inits,
              llvm::function_ref<Values(Value, ValueRange)> body);
  void ifThen(Value c, Fn then, Fn otherwise = nullptr);
  Values ifElse(Value c, llvm::ArrayRef<Type> types,
                llvm::function_ref<Values()> then,
                llvm::function_ref<Values()> otherwise);

  /// Calls a private function of the module, made by `make` on first use (with
  /// the builder inside its body).
  void call(llvm::StringRef name, ValueRange args,
            llvm::function_ref<void(Emitter &, ValueRange)> make);

  /// Elements per lane count of a value's type: 0 for a scalar.
  static int64_t lanesOf(Value v);
  Type sameShape(Value like, Type element);
};

// Math.cpp: vector or scalar f32 polynomials; each states its error bound.
Value emitExp(Emitter &e, Value x);
Value emitExp2(Emitter &e, Value x); ///< of x <= 127
Value emitLog(Emitter &e, Value x);  ///< of normal x > 0; finite of 0
Value emitTanh(Emitter &e, Value x);
Value emitErf(Emitter &e, Value x);
Value emitSigmoid(Emitter &e, Value x);
Value emitGelu(Emitter &e, Value x, gpt::GeluKind kind);
Value emitSilu(Emitter &e, Value x);
Value emitSoftcap(Emitter &e, Value x, double cap);
/// Sine and cosine of f64 scalars or vectors, |x| <= 2^20.
std::pair<Value, Value> emitSinCos(Emitter &e, Value x);
/// Emits the vector form of a scalar arith, math or gpt elementwise op. Null
/// with a diagnostic if there is none.
Value emitElementwise(Emitter &e, mlir::Operation *op, ValueRange operands);

/// The kernel function being generated: entry block arguments and the shapes of
/// its tensors.
struct KernelContext {
  gpt::KernelOp kernel;
  Value args, dims, scratch, thread, threads;
  /// Pointer of the i-th argument; results follow the operands.
  Value arg(Emitter &e, unsigned i);
  Value result(Emitter &e, unsigned i) {
    return arg(e, kernel.getArgumentTypes().size() + i);
  }
  /// Size i of argument n (results follow), a constant where static.
  Value size(Emitter &e, unsigned n, unsigned i);
  /// Product of all dimensions but the last `keep`.
  Value rows(Emitter &e, unsigned n, unsigned keep = 1);
  unsigned rank(unsigned n);
  llvm::ArrayRef<int64_t> shape(unsigned n);
  /// Storage format of weight argument i, or nothing for an activation.
  std::optional<gpt::Storage> storage(unsigned i);
  /// [from, to) of n units of work for this thread.
  std::pair<Value, Value> share(Emitter &e, Value n);
};

/// Where part i begins when n units of work are cut into `parts` parts.
Value cutOf(Emitter &e, Value n, Value i, Value parts);

} // namespace gptc::cpu
