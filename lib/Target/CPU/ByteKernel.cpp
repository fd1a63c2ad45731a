//===- ByteKernel.cpp - GEMM of bytes -------------------------------------===//
#include "ByteKernel.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cpu;
using gpt::Storage;

static constexpr int64_t blockK = 32, blockWords = 10;

static int zeroOf(Storage s) {
  return s == Storage::Q4_1 ? 0 : s == Storage::Q4_0 ? 8 : 128;
}
static bool isNibbles(Storage s) {
  return s == Storage::Q4_0 || s == Storage::Q4_1;
}

bool gptc::cpu::isOfBytes(Storage s) {
  return s == Storage::I8x4 || s == Storage::Q8_0x4 || isNibbles(s);
}

int64_t gptc::cpu::byteRowWords(Storage s, int64_t k) {
  return s == Storage::I8x4 ? (k + 15) / 16 * 4 + 2 : k / blockK * blockWords;
}

Value gptc::cpu::byteRowWord(Emitter &e, Storage s, Value k0) {
  return s == Storage::I8x4 ? e.div(k0, 4)
                            : e.mul(e.div(k0, blockK), blockWords);
}

Value gptc::cpu::byteSteps(Emitter &e, Storage s, Value depth) {
  return e.ceilDiv(depth, s == Storage::I8x4 ? 4 : blockK);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

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
  Value inverse =
      e.select(e.flt(zero, largest), e.fdiv(most, largest), zero);
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
  Value sum = vector::ReductionOp::create(e.b, e.loc,
                                          vector::CombiningKind::ADD, sums);
  Value meta = e.at(to, (k + 15) / 16 * 16);
  e.store(scale, meta);
  e.store(arith::MulIOp::create(
              e.b, e.loc, sum, e.constInt(e.i32(), -zeroOf(Storage::I8x4))),
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
    Value at = e.elem(to, e.mul(block, blockWords));
    e.store(joinBytes(e, s, bytes), at);
    e.store(scale, e.at(at, 32));
    e.store(s == Storage::Q4_1 ? e.fmul(scale, sum) : correction(e, s, sum),
            e.at(at, 36));
  });
}

void gptc::cpu::callQuantizeRow(Emitter &outer, Storage storage, Value from,
                                Value to, int64_t k) {
  std::string fn = fmt::format("quantize_row_{}_k{}",
                               gpt::stringifyStorage(storage).str(), k);
  outer.call(fn, {from, to}, [&](Emitter &e, ValueRange v) {
    if (storage == Storage::I8x4)
      return quantizeRow(e, v[0], v[1], k);
    quantizeBlocks(e, storage, v[0], v[1], k);
  });
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static Value bitcast(Emitter &e, Value v, int64_t lanes, Type element) {
  return vector::BitCastOp::create(e.b, e.loc, e.vec(lanes, element), v);
}

/// acc + the sums of four products of uint8 codes and int8, of each word.
static Value dotBytes(Emitter &e, Value acc, Value codes, Value x) {
  const int64_t lanes = e.target.lanes;
  auto intrinsic = [&](StringRef name, ValueRange args) {
    return LLVM::CallIntrinsicOp::create(e.b, e.loc, acc.getType(),
                                         e.b.getStringAttr(name), args)
        .getResult(0);
  };
  if (e.target.byteDot)
    return intrinsic("llvm.x86.avx512.vpdpbusd.512",
                     {acc, bitcast(e, codes, 4 * lanes, e.i8()),
                      bitcast(e, x, 4 * lanes, e.i8())});
  // Even and odd bytes as words of 16 bits, whose products of pairs fit 32.
  Type i16 = e.b.getI16Type();
  StringRef madd = lanes == 16  ? "llvm.x86.avx512.pmaddw.d.512"
                   : lanes == 8 ? "llvm.x86.avx2.pmadd.wd"
                                : "llvm.x86.sse2.pmadd.wd";
  Value c = bitcast(e, codes, 2 * lanes, i16), y = bitcast(e, x, 2 * lanes, i16);
  Value eight = e.constInt(c.getType(), 8);
  Value even = arith::AndIOp::create(e.b, e.loc, c, e.constInt(c.getType(), 255));
  Value odd = arith::ShRUIOp::create(e.b, e.loc, c, eight);
  Value yOdd = arith::ShRSIOp::create(e.b, e.loc, y, eight);
  Value yEven = arith::ShRSIOp::create(
      e.b, e.loc, arith::ShLIOp::create(e.b, e.loc, y, eight), eight);
  auto plus = [&](Value a, Value b) {
    return Value(arith::AddIOp::create(e.b, e.loc, a, b));
  };
  return plus(acc,
              plus(intrinsic(madd, {even, yEven}), intrinsic(madd, {odd, yOdd})));
}

namespace {
/// One kernel's operands inside its function.
struct Bytes {
  Emitter &e;
  const MicroKernel &m;
  const MicroOperands &o;
  int64_t lanes = e.target.lanes, nr = e.target.panelWidth(),
          n = m.panels * m.vectors;

  Value panel(int64_t i) {
    return e.at(o.b, e.mul(o.panelStride, i / m.vectors));
  }
  int64_t column(int64_t i) { return i % m.vectors * lanes; }
  /// Word `at + i` of row r of A.
  Value word(Type t, int64_t r, Value at, int64_t i) {
    Value p = m.packedRows
                  ? e.at(e.elem(o.a, e.mul(at, m.packedRows)),
                         (i * m.packedRows + r) * 4)
                  : e.at(e.elem(o.a, e.add(e.mul(o.lda, r), at)), i * 4);
    return e.splat(e.load(t, p), lanes);
  }
  Value words(Value at) { return e.load(e.vec(e.i32()), at); }

  Values quads(ValueRange inits);
  Values blocks(ValueRange inits);
  /// The codes of word g of vector i, and that word's multiplicands.
  void dots(Value block, Value a, MutableArrayRef<Value> sums);
};
} // namespace

Values Bytes::quads(ValueRange inits) {
  return e.loop(
      e.cst(0), o.k, 1, inits, [&](Value step, ValueRange c) -> Values {
        Value row = e.mul(step, nr * 4);
        Values w, next;
        for (int64_t p = 0; m.stream && p < m.panels; ++p)
          prefetch(e, e.at(e.at(panel(p * m.vectors), row), 32 * nr * 4),
                   nr * 4, 1);
        for (int64_t i = 0; i < n; ++i)
          w.push_back(words(e.at(e.at(panel(i), row), column(i) * 4)));
        for (int64_t r = 0; r < m.rows; ++r) {
          Value x = word(e.i32(), r, step, 0);
          for (int64_t i = 0; i < n; ++i)
            next.push_back(dotBytes(e, c[r * n + i], w[i], x));
        }
        return next;
      });
}

void Bytes::dots(Value block, Value a, MutableArrayRef<Value> sums) {
  const bool nibbles = isNibbles(m.storage);
  const int64_t codes = nr * (m.storage == Storage::Q4_1 ? 4 : 2);
  for (int64_t g = 0; g < 8; ++g) {
    Values w;
    for (int64_t i = 0; i < n; ++i) {
      Value at = e.at(e.at(panel(i), block),
                      codes + ((nibbles ? g / 2 : g) * nr + column(i)) * 4);
      Value v = words(at);
      Type t = v.getType();
      if (nibbles && g % 2)
        v = arith::ShRUIOp::create(e.b, e.loc, v, e.constInt(t, 4));
      if (nibbles)
        v = arith::AndIOp::create(e.b, e.loc, v, e.constInt(t, 0x0f0f0f0f));
      w.push_back(v);
    }
    for (int64_t r = 0; r < m.rows; ++r) {
      Value x = word(e.i32(), r, a, g);
      for (int64_t i = 0; i < n; ++i)
        sums[r * n + i] = dotBytes(e, sums[r * n + i], w[i], x);
    }
  }
}

Values Bytes::blocks(ValueRange inits) {
  const int64_t bytes = panelBytes(m.storage, nr, blockK);
  const bool minimums = m.storage == Storage::Q4_1;
  return e.loop(
      e.cst(0), o.k, 1, inits, [&](Value step, ValueRange c) -> Values {
        Value block = e.mul(step, bytes), a = e.mul(step, blockWords);
        for (int64_t p = 0; m.stream && p < m.panels; ++p)
          prefetch(e, e.at(e.at(panel(p * m.vectors), block), 4 * bytes), bytes,
                   1);
        Values sums, next(c);
        for (int64_t r = 0; r < m.rows; ++r) {
          Value from = minimums ? e.constInt(e.vec(e.i32()), 0)
                                : word(e.i32(), r, a, 9);
          sums.append(n, from);
        }
        dots(block, a, sums);
        Type half = e.vec(e.b.getF16Type());
        for (int64_t i = 0; i < n; ++i) {
          Value at = e.at(e.at(panel(i), block), column(i) * 2), low;
          Value d = halfToFloat(e, e.load(half, at));
          if (minimums)
            low = halfToFloat(e, e.load(half, e.at(at, nr * 2)));
          for (int64_t r = 0; r < m.rows; ++r) {
            Value &acc = next[r * n + i];
            Value sum = arith::SIToFPOp::create(e.b, e.loc, e.vec(e.f32()),
                                                sums[r * n + i]);
            acc = e.fma(sum, e.fmul(d, word(e.f32(), r, a, 8)), acc);
            if (minimums)
              acc = e.fma(low, word(e.f32(), r, a, 9), acc);
          }
        }
        return next;
      });
}

void gptc::cpu::callByteKernel(Emitter &outer, const MicroKernel &m,
                               const MicroOperands &o) {
  const int64_t lanes = outer.target.lanes, n = m.panels * m.vectors;
  std::string fn = fmt::format(
      "micro_bytes_{}_{}x{}{}{}_p{}", gpt::stringifyStorage(m.storage).str(),
      m.rows, n * lanes, m.packedRows ? "_packed" : "",
      m.accumulate ? "_acc"
      : m.stream   ? "_stream"
                   : "",
      m.panels);
  outer.call(
      fn, {o.a, o.lda, o.b, o.panelStride, o.ldb, o.c, o.ldc, o.k},
      [&](Emitter &e, ValueRange v) {
        MicroOperands in{v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]};
        Bytes k{e, m, in};
        const bool quads = m.storage == Storage::I8x4;
        Type t = e.vec(quads ? e.i32() : e.f32());
        auto cAt = [&](int64_t r, int64_t i) {
          return e.at(e.elem(in.c, e.mul(in.ldc, r)), i * lanes * 4);
        };
        Values acc;
        for (int64_t r = 0; r < m.rows; ++r)
          for (int64_t i = 0; i < n; ++i)
            acc.push_back(m.accumulate ? e.load(t, cAt(r, i))
                          : quads      ? e.constInt(t, 0)
                                       : e.constFp(t, 0));
        acc = quads ? k.quads(acc) : k.blocks(acc);
        for (int64_t r = 0; r < m.rows; ++r)
          for (int64_t i = 0; i < n; ++i)
            e.store(acc[r * n + i], cAt(r, i));
      });
}

void gptc::cpu::callScaleBytes(Emitter &outer, const ByteScales &s) {
  std::string fn = fmt::format("scale_bytes_{}_{}_{}", s.rowStep, s.sumStep,
                               s.ldc);
  outer.call(fn, {s.rows, s.row, s.panel, s.c}, [&](Emitter &e, ValueRange v) {
    const int64_t lanes = e.target.lanes;
    e.loop(e.cst(0), v[0], 1, [&](Value r) {
      Value meta = e.elem(v[1], r, s.rowStep);
      Value scale = e.splat(e.load(e.f32(), meta), lanes),
            sum = e.splat(e.load(e.i32(), e.at(meta, s.sumStep)), lanes);
      for (int64_t i = 0; i < e.target.panelWidth(); i += lanes) {
        Value at = e.at(e.elem(v[3], e.mul(r, s.ldc)), i * 4);
        Value x = arith::AddIOp::create(e.b, e.loc,
                                        e.load(e.vec(e.i32()), at), sum);
        x = arith::SIToFPOp::create(e.b, e.loc, e.vec(e.f32()), x);
        Value d = e.load(e.vec(e.f32()), e.at(v[2], i * 4));
        e.store(e.fmul(x, e.fmul(d, scale)), at);
      }
    });
  });
}
