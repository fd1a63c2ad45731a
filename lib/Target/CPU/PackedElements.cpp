//===- PackedElements.cpp - numbers of packed weights ---------------------===//
#include "PackedElements.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cpu;
using gpt::Storage;

bool gptc::cpu::isBlock(Storage s) {
  return s == Storage::Q8_0 || s == Storage::Q8_0x4 || s == Storage::Q4_0 ||
         s == Storage::Q4_1;
}

int64_t gptc::cpu::blockBytes(Storage s, int64_t nr) {
  return s == Storage::Q4_0 ? nr * 18 : s == Storage::Q4_1 ? nr * 20 : nr * 34;
}

int64_t gptc::cpu::panelBytes(Storage s, int64_t nr, int64_t k) {
  if (isBlock(s))
    return blockBytes(s, nr) * (k / 32);
  if (s == Storage::BF16x2)
    return nr * ((k + 1) / 2) * 4;
  if (s == Storage::I8x4)
    return nr * ((k + 3) / 4 * 4 + 4);
  return nr * k * (s == Storage::F32 ? 4 : 2);
}

// f16 bits to f32 where the target has no conversion: the exponent is rebiased
// by an exact multiplication.
Value gptc::cpu::halfToFloat(Emitter &e, Value h) {
  Type f = e.sameShape(h, e.f32()), i = e.sameShape(h, e.i32());
  if (e.target.f16Convert)
    return arith::ExtFOp::create(e.b, e.loc, f, h);
  Value bits =
      arith::BitcastOp::create(e.b, e.loc, e.sameShape(h, e.b.getI16Type()), h);
  bits = arith::ExtUIOp::create(e.b, e.loc, i, bits);
  auto mask = [&](int64_t m) {
    return Value(arith::AndIOp::create(e.b, e.loc, bits, e.constInt(i, m)));
  };
  auto shl = [&](Value v, int64_t n) {
    return Value(arith::ShLIOp::create(e.b, e.loc, v, e.constInt(i, n)));
  };
  Value magnitude =
      arith::BitcastOp::create(e.b, e.loc, f, shl(mask(0x7fff), 13));
  magnitude = e.fmul(magnitude, e.constFp(f, 0x1p112));
  Value r = arith::BitcastOp::create(e.b, e.loc, i, magnitude);
  Value special = arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::uge,
                                        mask(0x7fff), e.constInt(i, 0x7c00));
  r = e.select(special,
               arith::OrIOp::create(e.b, e.loc, r, e.constInt(i, 0x7f800000)),
               r);
  r = arith::OrIOp::create(e.b, e.loc, r, shl(mask(0x8000), 16));
  return arith::BitcastOp::create(e.b, e.loc, f, r);
}

Value gptc::cpu::halfOfPair(Emitter &e, Value words, bool high) {
  Type i = words.getType();
  Value bits =
      high ? Value(arith::AndIOp::create(e.b, e.loc, words,
                                         e.constInt(i, int32_t(0xffff0000))))
           : Value(arith::ShLIOp::create(e.b, e.loc, words, e.constInt(i, 16)));
  return arith::BitcastOp::create(e.b, e.loc, e.sameShape(words, e.f32()),
                                  bits);
}

// Without a conversion in the CPU, LLVM would call a library.
Value gptc::cpu::roundedBits(Emitter &e, Value v) {
  Type i = e.sameShape(v, e.i32());
  auto constant = [&](int64_t x) { return e.constInt(i, x); };
  auto plus = [&](Value a, Value b) {
    return Value(arith::AddIOp::create(e.b, e.loc, a, b));
  };
  auto both = [&](Value a, Value b) {
    return Value(arith::AndIOp::create(e.b, e.loc, a, b));
  };
  Value bits = arith::BitcastOp::create(e.b, e.loc, i, v);
  Value odd = both(arith::ShRUIOp::create(e.b, e.loc, bits, constant(16)),
                   constant(1));
  Value rounded = plus(bits, plus(odd, constant(0x7fff)));
  Value nan = arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::UNO, v, v);
  rounded = e.select(
      nan, arith::OrIOp::create(e.b, e.loc, bits, constant(0x400000)), rounded);
  return both(rounded, constant(int32_t(0xffff0000)));
}

Value gptc::cpu::roundToPairs(Emitter &e, Value even, Value odd) {
  Value low = roundedBits(e, even);
  low = arith::ShRUIOp::create(e.b, e.loc, low, e.constInt(low.getType(), 16));
  return arith::OrIOp::create(e.b, e.loc, low, roundedBits(e, odd));
}

Value gptc::cpu::bf16ToFloat(Emitter &e, Value bits) {
  Type i = e.sameShape(bits, e.i32());
  Value wide = arith::ExtUIOp::create(e.b, e.loc, i, bits);
  wide = arith::ShLIOp::create(e.b, e.loc, wide, e.constInt(i, 16));
  return arith::BitcastOp::create(e.b, e.loc, e.sameShape(bits, e.f32()), wide);
}

Value gptc::cpu::loadDense(Emitter &e, Storage s, Value p, int64_t lanes) {
  auto type = [&](Type t) { return lanes ? Type(e.vec(lanes, t)) : t; };
  if (s == Storage::F16)
    return halfToFloat(e, e.load(type(e.b.getF16Type()), p));
  if (s == Storage::BF16)
    return bf16ToFloat(e, e.load(type(e.b.getI16Type()), p));
  return e.load(type(s == Storage::BF16x2 ? e.i32() : e.f32()), p);
}

int64_t gptc::cpu::denseBytes(Storage s) {
  return s == Storage::F16 || s == Storage::BF16 ? 2 : 4;
}

Value gptc::cpu::nibbles(Emitter &e, Value words, int64_t s, int zero,
                     Value table) {
  Type i = words.getType();
  Value shifted =
      s ? Value(arith::ShRUIOp::create(e.b, e.loc, words, e.constInt(i, 4 * s)))
        : words;
  if (table) { // the permutation reads only the low four bits of an index
    auto intrinsic = e.b.getStringAttr("llvm.x86.avx512.permvar.sf.512");
    return LLVM::CallIntrinsicOp::create(e.b, e.loc, table.getType(), intrinsic,
                                         ValueRange{table, shifted})
        .getResult(0);
  }
  Value code = arith::AndIOp::create(e.b, e.loc, shifted, e.constInt(i, 15));
  if (zero)
    code = arith::SubIOp::create(e.b, e.loc, code, e.constInt(i, zero));
  return arith::SIToFPOp::create(e.b, e.loc, e.sameShape(words, e.f32()), code);
}

Value gptc::cpu::nibbleTable(Emitter &e, Storage s) {
  if (!e.target.permute16 || (s != Storage::Q4_0 && s != Storage::Q4_1))
    return {};
  SmallVector<float> t;
  for (int i = 0; i < 16; ++i)
    t.push_back(s == Storage::Q4_0 ? i - 8 : i);
  return arith::ConstantOp::create(
      e.b, e.loc,
      DenseElementsAttr::get(e.vec(16, e.f32()), ArrayRef<float>(t)));
}

Value gptc::cpu::loadPacked(Emitter &e, Storage s, Value base, Value n, Value k,
                            int64_t inFeatures) {
  const int64_t nr = e.target.panelWidth();
  Value panel = e.at(base, e.mul(e.div(n, nr), panelBytes(s, nr, inFeatures)));
  Value column = e.rem(n, nr);
  if (s == Storage::BF16x2) {
    Value pair = e.elem(panel, e.add(e.mul(e.div(k, 2), nr), column));
    return bf16ToFloat(e, e.load(e.b.getI16Type(), e.elem(pair, e.rem(k, 2), 2)));
  }
  auto code = [&](Value at) { // uint8, less 128
    Value c = arith::ExtUIOp::create(e.b, e.loc, e.i32(), e.load(e.i8(), at));
    c = arith::SubIOp::create(e.b, e.loc, c, e.constInt(e.i32(), 128));
    return Value(arith::SIToFPOp::create(e.b, e.loc, e.f32(), c));
  };
  auto quad = [&](Value from, Value i) {
    Value word = e.elem(from, e.add(e.mul(e.div(i, 4), nr), column));
    return code(e.at(word, e.rem(i, 4)));
  };
  if (s == Storage::I8x4) {
    Value scales = e.at(panel, (inFeatures + 3) / 4 * 4 * nr);
    return e.fmul(quad(panel, k), e.load(e.f32(), e.elem(scales, column)));
  }
  if (!isBlock(s))
    return loadDense(
        e, s,
        e.elem(panel, e.add(e.mul(k, nr), column), s == Storage::F32 ? 4 : 2),
        0);
  Value block = e.at(panel, e.mul(e.div(k, 32), blockBytes(s, nr)));
  Value inner = e.rem(k, 32);
  Value scale =
      halfToFloat(e, e.load(e.b.getF16Type(), e.elem(block, column, 2)));
  if (s == Storage::Q8_0x4)
    return e.fmul(quad(e.at(block, nr * 2), inner), scale);
  if (s == Storage::Q8_0) {
    Value at = e.at(e.at(block, nr * 2), e.add(e.mul(inner, nr), column));
    Value q = arith::ExtSIOp::create(e.b, e.loc, e.i32(), e.load(e.i8(), at));
    return e.fmul(arith::SIToFPOp::create(e.b, e.loc, e.f32(), q), scale);
  }
  const bool q41 = s == Storage::Q4_1;
  Value words = e.at(block, nr * (q41 ? 4 : 2));
  Value word =
      e.load(e.i32(), e.elem(words, e.add(e.mul(e.div(inner, 8), nr), column)));
  Value shift =
      arith::TruncIOp::create(e.b, e.loc, e.i32(), e.mul(e.rem(inner, 8), 4));
  Value shifted = arith::ShRUIOp::create(e.b, e.loc, word, shift);
  Value q = nibbles(e, shifted, 0, q41 ? 0 : 8, {});
  if (!q41)
    return e.fmul(q, scale);
  return e.fma(q, scale,
               halfToFloat(e, e.load(e.b.getF16Type(),
                                     e.elem(e.at(block, nr * 2), column, 2))));
}
