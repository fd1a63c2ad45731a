//===- ByteRows.cpp - rows of numbers as bytes ----------------------------===//
#include "ByteKernel.h"
#include <cmath>
#include <limits>

using namespace mlir;
using namespace gptc;
using namespace gptc::cpu;
using gpt::Storage;

static constexpr int64_t blockK = 32;

int64_t gptc::cpu::zeroOf(Storage s) {
  return s == Storage::Q4_1 ? 0 : s == Storage::Q4_0 ? 8 : 128;
}
bool gptc::cpu::isNibbles(Storage s) {
  return s == Storage::Q4_0 || s == Storage::Q4_1;
}
bool gptc::cpu::isOfBytes(Storage s) {
  return s == Storage::I8x4 || s == Storage::Q8_0x4 || isNibbles(s);
}

bool gptc::cpu::isTwelveBits(ByteForm f) {
  return f.digits == 2 && isNibbles(f.storage);
}

SmallVector<int64_t> gptc::cpu::digitGroups(ByteForm f) {
  if (f.digits == 3 && !isNibbles(f.storage))
    return {2, 1};
  return {f.digits};
}

int64_t gptc::cpu::blockWords(ByteForm f) {
  return f.digits * blockK / 4 + 2 * digitGroups(f).size() + (f.digits == 1);
}
int64_t gptc::cpu::byteRowWords(ByteForm f, int64_t k) {
  return f.storage == Storage::I8x4 ? (k + 15) / 16 * 4 + 2
                                    : k / blockK * blockWords(f);
}

Value gptc::cpu::byteRowWord(Emitter &e, ByteForm f, Value k0) {
  return f.storage == Storage::I8x4 ? e.div(k0, 4)
                                    : e.mul(e.div(k0, blockK), blockWords(f));
}

Value gptc::cpu::byteSteps(Emitter &e, Storage s, Value depth) {
  return e.ceilDiv(depth, s == Storage::I8x4 ? 4 : blockK);
}

static Value magnitude(Emitter &e, Value x) { return e.fmax(x, e.fneg(x)); }

/// Vectors of x / scale rounded to whole numbers of at most 127.
static Value quantize(Emitter &e, Value x, Value inverse) {
  Type t = x.getType();
  Value q = e.fmul(x, inverse);
  // A NaN becomes -127; the scale carries it.
  q = e.fmax(q, e.constFp(t, -127));
  q = e.select(e.flt(q, e.constFp(t, 127)), q, e.constFp(t, 127));
  Value magic = e.constFp(t, 0x1.8p23); // the sum rounds to whole numbers
  return e.fsub(e.fadd(q, magic), magic);
}

static Value toBytes(Emitter &e, Value q) {
  q = arith::FPToSIOp::create(e.b, e.loc, e.sameShape(q, e.i32()), q);
  return arith::TruncIOp::create(e.b, e.loc, e.sameShape(q, e.i8()), q);
}

/// Scale and its inverse of numbers whose largest magnitude is `largest`;
/// `finite` is 0, or NaN if one is not finite.
static std::pair<Value, Value> scales(Emitter &e, Value largest, Value finite) {
  Value zero = e.constFp(e.f32(), 0), most = e.constFp(e.f32(), 127);
  Value scale = e.fadd(e.fdiv(largest, most), finite);
  Value inverse = e.select(e.flt(zero, largest), e.fdiv(most, largest), zero);
  return {scale, inverse};
}

/// -zero * sum as i32; exact: sum is a whole number below 2^24.
static Value correction(Emitter &e, Storage s, Value sum) {
  Value whole = arith::FPToSIOp::create(e.b, e.loc, e.i32(), sum);
  return arith::MulIOp::create(e.b, e.loc, whole,
                               e.constInt(e.i32(), -zeroOf(s)));
}

static void quantizeRow(Emitter &e, Value from, Value to, int64_t k) {
  const int64_t lanes = e.target.lanes, vectors = (k + lanes - 1) / lanes;
  VectorType vt = e.vec(e.f32());
  auto at = [&](Value i) {
    return e.loadMasked(vt, e.elem(from, i),
                        e.firstLanes(e.sub(e.cst(k), i), lanes));
  };
  Value zero = e.constFp(vt, 0);
  Values found =
      e.loop(e.cst(0), e.cst(vectors * lanes), lanes, Values{zero, zero},
             [&](Value i, ValueRange c) -> Values {
               Value x = at(i);
               return {e.fmax(magnitude(e, x), c[0]), e.fma(x, zero, c[1])};
             });
  auto [scale, inverse] = scales(e, e.laneMax(found[0]), e.laneSum(found[1]));
  Value wide = e.splat(inverse, lanes);
  // Whole numbers below 2^31 / 127: summed as integers.
  Value sums =
      e.loop(e.cst(0), e.cst(vectors * lanes), lanes,
             Values{e.constInt(e.vec(e.i32()), 0)},
             [&](Value i, ValueRange c) -> Values {
               Value q = quantize(e, at(i), wide);
               e.store(toBytes(e, q), e.at(to, i));
               q = arith::FPToSIOp::create(e.b, e.loc, e.vec(e.i32()), q);
               return {arith::AddIOp::create(e.b, e.loc, c[0], q)};
             })[0];
  Value sum =
      vector::ReductionOp::create(e.b, e.loc, vector::CombiningKind::ADD, sums);
  Value meta = e.at(to, (k + 15) / 16 * 16);
  e.store(scale, meta);
  e.store(arith::MulIOp::create(e.b, e.loc, sum,
                                e.constInt(e.i32(), -zeroOf(Storage::I8x4))),
          e.at(meta, 4));
}

/// 32 bytes of one block in the order of its words.
static Value joinBytes(Emitter &e, Storage s, Values bytes) {
  while (bytes.size() > 1) {
    Values next;
    for (size_t i = 0; i < bytes.size(); i += 2) {
      SmallVector<int64_t> all;
      for (int64_t j = 0; j < 2 * Emitter::lanesOf(bytes[i]); ++j)
        all.push_back(j);
      next.push_back(e.shuffle(bytes[i], bytes[i + 1], all));
    }
    bytes = next;
  }
  if (!isNibbles(s))
    return bytes[0];
  SmallVector<int64_t> order;
  for (int64_t k = 0; k < blockK; ++k)
    order.push_back(k / 8 * 8 + k % 4 * 2 + k / 4 % 2);
  return e.shuffle(bytes[0], bytes[0], order);
}

/// NaN where it is none.
static Value unitOf(Emitter &e, Value scale) {
  Value unit = e.fmul(scale, e.constFp(e.f32(), wholeNumbers));
  return e.fadd(unit, e.fmul(unit, e.constFp(e.f32(), 0)));
}

static void quantizeBlocks(Emitter &e, Storage s, Value from, Value to,
                           int64_t k) {
  const int64_t lanes = e.target.lanes;
  Type vt = e.vec(e.f32());
  e.loop(e.cst(0), e.cst(k / blockK), 1, [&](Value block) {
    Value largest, finite, zero = e.constFp(vt, 0);
    Values x, bytes;
    for (int64_t i = 0; i < blockK; i += lanes) {
      x.push_back(e.load(vt, e.elem(from, e.add(e.mul(block, blockK), i))));
      Value m = magnitude(e, x.back()), z = e.fmul(x.back(), zero);
      largest = largest ? e.fmax(m, largest) : e.fmax(m, zero);
      finite = finite ? e.fadd(finite, z) : z;
    }
    auto [scale, inverse] = scales(e, e.laneMax(largest), e.laneSum(finite));
    Value wide = e.splat(inverse, lanes), sums;
    for (Value v : x) {
      Value q = quantize(e, v, wide);
      sums = sums ? e.fadd(sums, q) : q;
      bytes.push_back(toBytes(e, q));
    }
    Value sum = e.laneSum(sums);
    Value at = e.elem(to, e.mul(block, blockWords({s, 1})));
    e.store(joinBytes(e, s, bytes), at);
    // 1.5 times it is then exact.
    scale = arith::AndIOp::create(
        e.b, e.loc, arith::BitcastOp::create(e.b, e.loc, e.i32(), scale),
        e.constInt(e.i32(), -4));
    scale = arith::BitcastOp::create(e.b, e.loc, e.f32(), scale);
    e.store(scale, e.at(at, 32));
    e.store(unitOf(e, e.fneg(scale)), e.at(at, 36));
    Value start = e.constInt(e.i32(), llvm::bit_cast<int32_t>(wholeNumbers));
    e.store(s == Storage::Q4_1 ? e.fmul(scale, sum)
                               : arith::AddIOp::create(e.b, e.loc, start,
                                                       correction(e, s, sum))
                                     .getResult(),
            e.at(at, 40));
  });
}

/// Scale and its inverse, powers of two, with which numbers of at most
/// `largest` (bits of a magnitude, i32) become whole ones of at most 2^bits.
/// NaN if one is not finite. Numbers below 2^(bits - 127) lose bits.
static std::pair<Value, Value> exponents(Emitter &e, Value largest,
                                         int64_t bits) {
  auto constant = [&](int64_t v) { return e.constInt(e.i32(), v); };
  auto number = [&](Value exponent) {
    Value word = arith::ShLIOp::create(e.b, e.loc, exponent, constant(23));
    return Value(arith::BitcastOp::create(e.b, e.loc, e.f32(), word));
  };
  Value exponent = arith::ShRUIOp::create(e.b, e.loc, largest, constant(23));
  Value finite = arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::ult,
                                       exponent, constant(255));
  // The largest is below 2^(exponent + 1).
  Value unit = arith::SubIOp::create(
      e.b, e.loc, arith::MaxUIOp::create(e.b, e.loc, exponent, constant(bits)),
      constant(bits - 1));
  Value scale =
      e.select(finite, number(unit),
               e.constFp(e.f32(), std::numeric_limits<float>::quiet_NaN()));
  return {scale,
          number(arith::SubIOp::create(e.b, e.loc, constant(254), unit))};
}

/// Of twelve bits, what stands behind the digits of a block whose numbers'
/// total is `sum`.
static std::pair<Value, Value> unitAndSecond(Emitter &e, Storage s, Value scale,
                                             Value sum) {
  Value unit = unitOf(e, scale);
  if (s == Storage::Q4_1)
    return {unit,
            e.fmul(scale, arith::SIToFPOp::create(e.b, e.loc, e.f32(), sum))};
  Value correction =
      arith::MulIOp::create(e.b, e.loc, sum, e.constInt(e.i32(), -zeroOf(s)));
  return {unit,
          arith::AddIOp::create(
              e.b, e.loc, arith::BitcastOp::create(e.b, e.loc, e.i32(), unit),
              correction)};
}

/// Blocks of whole numbers in digits: from -128 to 127, of twelve bits the low
/// one from 0 to 15.
static void splitBlocks(Emitter &e, ByteForm f, Value from, Value to,
                        int64_t k) {
  const int64_t lanes = e.target.lanes;
  // Sums of 32 products with codes of four bits stay below 2^31.
  const bool twelve = isTwelveBits(f);
  const int64_t bits = twelve          ? 11
                       : f.digits == 2 ? 14
                                       : 22,
                digitBits = twelve ? 4 : 8;
  Type vt = e.vec(e.f32()), it = e.vec(e.i32());
  auto plus = [&](Value x, Value y) -> Value {
    return arith::AddIOp::create(e.b, e.loc, x, y);
  };
  auto reduce = [&](vector::CombiningKind kind, Value v) -> Value {
    return vector::ReductionOp::create(e.b, e.loc, kind, v);
  };
  auto total = [&](ValueRange x) {
    Value sum = x[0];
    for (Value v : x.drop_front())
      sum = plus(sum, v);
    return reduce(vector::CombiningKind::ADD, sum);
  };
  e.loop(e.cst(0), e.cst(k / blockK), 1, [&](Value block) {
    Values x;
    Value largest;
    for (int64_t i = 0; i < blockK; i += lanes) {
      x.push_back(e.load(vt, e.elem(from, e.add(e.mul(block, blockK), i))));
      Value m = arith::AndIOp::create(
          e.b, e.loc, arith::BitcastOp::create(e.b, e.loc, it, x.back()),
          e.constInt(it, 0x7fffffff));
      largest =
          largest ? Value(arith::MaxUIOp::create(e.b, e.loc, m, largest)) : m;
    }
    largest = reduce(vector::CombiningKind::MAXUI, largest);
    // As it rounds: 2^11 itself would not fit.
    if (twelve)
      largest = plus(largest, e.constInt(e.i32(), int64_t(1) << (23 - bits)));
    auto [scale, inverse] = exponents(e, largest, bits);
    Value wide = e.splat(inverse, lanes);
    // Whole numbers are the low bits of the sum with 1.5 * 2^23.
    constexpr int64_t magic = 0x4b400000;
    for (Value &v : x) {
      Value sum = e.fma(v, wide, e.constFp(vt, 0x1.8p23));
      v = arith::SubIOp::create(e.b, e.loc,
                                arith::BitcastOp::create(e.b, e.loc, it, sum),
                                e.constInt(it, magic));
    }
    Value at = e.elem(to, e.mul(block, blockWords(f)));
    const SmallVector<int64_t> groups = digitGroups(f);
    int64_t digit = f.digits, shift = 0;
    for (int64_t g = groups.size() - 1; g >= 0; --g) {
      // What is left of the numbers, less what is left after this group, is its
      // part of the sum.
      Value sum = total(x);
      for (int64_t i = 0; i < groups[g]; ++i) {
        Values bytes;
        const bool low = twelve && i == 0;
        for (Value &v : x) {
          Value byte = v;
          if (low)
            byte = arith::AndIOp::create(e.b, e.loc, v, e.constInt(it, 15));
          bytes.push_back(arith::TruncIOp::create(
              e.b, e.loc, e.sameShape(v, e.i8()), byte));
          Value rest = twelve ? v : plus(v, e.constInt(it, 128));
          v = arith::ShRSIOp::create(e.b, e.loc, rest,
                                     e.constInt(it, digitBits));
        }
        e.store(joinBytes(e, f.storage, bytes), e.at(at, --digit * blockK));
      }
      if (g > 0)
        sum = arith::SubIOp::create(
            e.b, e.loc, sum,
            arith::ShLIOp::create(e.b, e.loc, total(x),
                                  e.constInt(e.i32(), 8 * groups[g])));
      Value meta = e.at(at, f.digits * blockK + g * 8);
      if (twelve) {
        auto [unit, second] = unitAndSecond(e, f.storage, scale, sum);
        e.store(unit, meta);
        e.store(second, e.at(meta, 4));
        continue;
      }
      Value unit = e.fmul(scale, e.constFp(e.f32(), std::ldexp(1.0, shift)));
      e.store(unit, meta);
      if (f.storage == Storage::Q4_1)
        e.store(e.fmul(unit, arith::SIToFPOp::create(e.b, e.loc, e.f32(), sum)),
                e.at(meta, 4));
      else
        e.store(arith::MulIOp::create(e.b, e.loc, sum,
                                      e.constInt(e.i32(), -zeroOf(f.storage))),
                e.at(meta, 4));
      shift += 8 * groups[g];
    }
  });
}

void gptc::cpu::callQuantizeRow(Emitter &outer, ByteForm f, Value from,
                                Value to, int64_t k) {
  std::string fn = fmt::format(
      "quantize_row_{}{}_k{}", gpt::stringifyStorage(f.storage).str(),
      f.digits > 1 ? fmt::format("_{}", f.digits) : "", k);
  outer.call(fn, {from, to}, [&](Emitter &e, ValueRange v) {
    if (f.digits > 1)
      return splitBlocks(e, f, v[0], v[1], k);
    if (f.storage == Storage::I8x4)
      return quantizeRow(e, v[0], v[1], k);
    quantizeBlocks(e, f.storage, v[0], v[1], k);
  });
}
