//===- ByteKernel.cpp - GEMM of bytes -------------------------------------===//
#include "ByteKernel.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cpu;
using gpt::Storage;

static constexpr int64_t blockK = 32;

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
  Value c = bitcast(e, codes, 2 * lanes, i16),
        y = bitcast(e, x, 2 * lanes, i16);
  Value eight = e.constInt(c.getType(), 8);
  Value even =
      arith::AndIOp::create(e.b, e.loc, c, e.constInt(c.getType(), 255));
  Value odd = arith::ShRUIOp::create(e.b, e.loc, c, eight);
  Value yOdd = arith::ShRSIOp::create(e.b, e.loc, y, eight);
  Value yEven = arith::ShRSIOp::create(
      e.b, e.loc, arith::ShLIOp::create(e.b, e.loc, y, eight), eight);
  auto plus = [&](Value a, Value b) {
    return Value(arith::AddIOp::create(e.b, e.loc, a, b));
  };
  return plus(
      acc, plus(intrinsic(madd, {even, yEven}), intrinsic(madd, {odd, yOdd})));
}

namespace {
/// One kernel's operands inside its function.
struct Bytes {
  Emitter &e;
  const MicroKernel &m;
  const MicroOperands &o;
  int64_t lanes = e.target.lanes, nr = e.target.panelWidth(),
          n = m.panels * m.vectors;
  ByteForm form{m.storage, m.digits};
  bool minimums = m.storage == Storage::Q4_1, twelve = isTwelveBits(form);

  Value panel(int64_t i) {
    return e.at(o.b, e.mul(o.panelStride, i / m.vectors));
  }
  int64_t column(int64_t i) { return i % m.vectors * lanes; }
  Value cAt(int64_t r, int64_t i) {
    return e.at(e.elem(o.c, e.mul(o.ldc, r)), i * lanes * 4);
  }
  /// Word `at + i` of row r of A.
  Value word(Type t, int64_t r, Value at, int64_t i) {
    Value p = m.packedRows
                  ? e.at(e.elem(o.a, e.mul(at, m.packedRows)),
                         (i * m.packedRows + r) * 4)
                  : e.at(e.elem(o.a, e.add(e.mul(o.lda, r), at)), i * 4);
    return e.splat(e.load(t, p), lanes);
  }
  Value words(Value at) { return e.load(e.vec(e.i32()), at); }
  Value zeros() { return e.constInt(e.vec(e.i32()), 0); }

  Values quads(ValueRange inits);
  Values blocks(ValueRange inits);
  void blocksOfDigits();
  void blockOfDigits(Value block, Value a);
  Values unpackedBlocks(ValueRange inits);
  /// Bytes of a block, unpacked where A is packed.
  int64_t blockBytes() {
    return m.packedRows ? unpackedBlockBytes(form, nr)
                        : panelBytes(m.storage, nr, 32);
  }
  /// Word g of four codes of each column of vector i.
  Value codes(Value block, int64_t g, int64_t i);
  /// Its scales, and minimums or null.
  std::pair<Value, Value> scales(Value block, int64_t i);
  /// sums[way][digit][row][vector] += products of a block. Words of codes take
  /// ways in turns.
  void dots(Value block, Value a, int64_t ways, MutableArrayRef<Value> sums);
  /// Words of a row's block before its scales.
  int64_t meta() { return m.digits * blockK / 4; }
  /// Whether sums start at the bits of an f32.
  bool startsAtUnit() { return m.digits == 1 || twelve; }
  /// Where those of row r do.
  Value start(int64_t r, Value a) {
    if (m.digits == 1 && minimums)
      return e.constInt(e.vec(e.i32()), llvm::bit_cast<int32_t>(wholeNumbers));
    return word(e.i32(), r, a,
                meta() + (twelve && minimums ? 0
                          : twelve           ? 1
                                             : 2));
  }
  /// The number that such a sum stands for.
  Value scaledUnit(Value sum, int64_t r, Value a);
  /// Of an unpacked block, for one digit.
  Values unpackedDots(Value block, Value a, int64_t digit, Values sums);
  /// acc with the whole numbers of a group of digits.
  Value scaled(Value acc, Value sum, std::pair<Value, Value> scales, int64_t r,
               Value a, int64_t group);
  /// C += the same, in memory, for all rows of a vector; of row r
  /// sums[r * pitch].
  void addToC(ArrayRef<Value> sums, int64_t pitch,
              std::pair<Value, Value> scales, int64_t i, Value a,
              int64_t group);
};
} // namespace

Values Bytes::quads(ValueRange inits) {
  return e.loop(
      e.cst(0), o.k, 1, inits, [&](Value step, ValueRange c) -> Values {
        Value row = e.mul(step, nr * 4);
        Values w, next;
        prefetchAhead(e, m, o, step, nr * 4);
        prefetchStep(e, m, o, step);
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

Value Bytes::codes(Value block, int64_t g, int64_t i) {
  Value at = e.at(panel(i), block);
  return m.packedRows ? words(e.at(at, (g * nr + column(i)) * 4))
                      : codesAt(e, m.storage, at, g, column(i));
}

std::pair<Value, Value> Bytes::scales(Value block, int64_t i) {
  Value at = e.at(panel(i), block);
  if (!m.packedRows)
    return scalesAt(e, m.storage, at, column(i));
  auto number = [&](int64_t row) {
    return e.load(e.vec(e.f32()),
                  e.at(at, blockBytes() + ((row - 2) * nr + column(i)) * 4));
  };
  return {number(0), minimums ? number(1) : Value()};
}

void Bytes::dots(Value block, Value a, int64_t ways,
                 MutableArrayRef<Value> sums) {
  for (int64_t g = 0; g < blockK / 4; ++g) {
    Values w;
    for (int64_t i = 0; i < n; ++i)
      w.push_back(codes(block, g, i));
    for (int64_t d = 0; d < m.digits; ++d)
      for (int64_t r = 0; r < m.rows; ++r) {
        Value x = word(e.i32(), r, a, d * blockK / 4 + g);
        for (int64_t i = 0; i < n; ++i) {
          Value &sum = sums[((g % ways * m.digits + d) * m.rows + r) * n + i];
          sum = dotBytes(e, sum, w[i], x);
        }
      }
  }
}

Value Bytes::scaledUnit(Value sum, int64_t r, Value a) {
  Value x = bitcast(e, sum, lanes, e.f32()),
        first = word(e.f32(), r, a, meta());
  if (twelve)
    return e.fsub(x, first);
  if (e.target.fma)
    return e.fma(x, first, word(e.f32(), r, a, meta() + 1));
  return e.fmul(e.fsub(x, e.constFp(x.getType(), wholeNumbers)), first);
}

Value Bytes::scaled(Value acc, Value sum, std::pair<Value, Value> scales,
                    int64_t r, Value a, int64_t group) {
  int64_t at = meta() + 2 * group;
  if (startsAtUnit()) {
    acc = e.fma(scaledUnit(sum, r, a), scales.first, acc);
    at += m.digits == 1;
  } else {
    if (m.digits > 1 && !minimums)
      sum = arith::AddIOp::create(e.b, e.loc, sum, word(e.i32(), r, a, at + 1));
    sum = arith::SIToFPOp::create(e.b, e.loc, e.vec(e.f32()), sum);
    acc = e.fma(sum, e.fmul(scales.first, word(e.f32(), r, a, at)), acc);
  }
  return minimums ? e.fma(scales.second, word(e.f32(), r, a, at + 1), acc)
                  : acc;
}

void Bytes::addToC(ArrayRef<Value> sums, int64_t pitch,
                   std::pair<Value, Value> scales, int64_t i, Value a,
                   int64_t group) {
  Type vt = e.vec(e.f32());
  for (int64_t r = 0; r < m.rows; ++r)
    e.store(scaled(e.load(vt, cAt(r, i)), sums[r * pitch], scales, r, a, group),
            cAt(r, i));
}

Values Bytes::blocks(ValueRange inits) {
  const int64_t bytes = blockBytes();
  return e.loop(
      e.cst(0), o.k, 1, inits, [&](Value step, ValueRange c) -> Values {
        Value block = e.mul(step, bytes), a = e.mul(step, blockWords(form));
        prefetchAhead(e, m, o, step, bytes);
        prefetchStep(e, m, o, step);
        Values sums, next(c);
        for (int64_t r = 0; r < m.rows; ++r)
          sums.append(n, start(r, a));
        dots(block, a, 1, sums);
        for (int64_t i = 0; i < n; ++i) {
          auto of = scales(block, i);
          for (int64_t r = 0; r < m.rows; ++r)
            next[r * n + i] =
                scaled(c[r * n + i], sums[r * n + i], of, r, a, 0);
        }
        return next;
      });
}

/// high * 2^bits + low.
static Value joinDigits(Emitter &e, Value high, Value low, int64_t bits = 8) {
  high =
      arith::ShLIOp::create(e.b, e.loc, high, e.constInt(high.getType(), bits));
  return low ? Value(arith::AddIOp::create(e.b, e.loc, high, low)) : high;
}

// A sum for each digit: many short chains, in two ways where they would be
// fewer than a latency of 5 times two ports. C stays in memory, for want of
// registers.
void Bytes::blockOfDigits(Value block, Value a) {
  const int64_t size = m.rows * n, ways = m.digits * size <= 6 ? 2 : 1;
  Values sums(ways * m.digits * size, zeros());
  for (int64_t j = 0; twelve && j < size; ++j)
    sums[size + j] = start(j / n, a);
  dots(block, a, ways, sums);
  for (int64_t j = 0; ways > 1 && j < m.digits * size; ++j)
    sums[j] =
        arith::AddIOp::create(e.b, e.loc, sums[j], sums[m.digits * size + j]);
  ArrayRef<Value> next = sums;
  for (auto [group, count] : llvm::enumerate(digitGroups(form))) {
    Values whole(next.take_front(size));
    for (int64_t j = size; j < count * size; ++j)
      whole[j % size] = joinDigits(e, whole[j % size], next[j], twelve ? 4 : 8);
    for (int64_t i = 0; i < n; ++i)
      addToC(ArrayRef(whole).drop_front(i), n, scales(block, i), i, a, group);
    next = next.drop_front(count * size);
  }
}

// Panels stream side by side, and as many at a time as have sums and codes in
// registers.
void Bytes::blocksOfDigits() {
  const int64_t bytes = panelBytes(m.storage, nr, blockK);
  MicroKernel some = m;
  some.panels = std::min<int64_t>(m.panels, 2);
  if (some.panels * m.vectors * (m.digits * m.rows + 2) >
      e.target.registers - 4)
    some.panels = 1;
  e.loop(e.cst(0), o.k, 1, [&](Value step) {
    prefetchAhead(e, m, o, step, bytes);
    e.loop(e.cst(0), e.cst(m.panels), some.panels, [&](Value first) {
      MicroOperands at = o;
      at.b = e.at(o.b, e.mul(o.panelStride, first));
      at.c = e.elem(o.c, e.mul(first, nr));
      Bytes{e, some, at}.blockOfDigits(e.mul(step, bytes),
                                       e.mul(step, blockWords(form)));
    });
  });
}

Values Bytes::unpackedDots(Value block, Value a, int64_t digit, Values sums) {
  return e.loop(e.cst(0), e.cst(blockK / 4), 1, sums,
                [&](Value g, ValueRange c) -> Values {
                  Values w, next;
                  for (int64_t i = 0; i < n; ++i)
                    w.push_back(words(e.at(e.at(block, e.mul(g, nr * 4)),
                                           (twelve ? digit * blockK * nr : 0) +
                                               column(i) * 4)));
                  Value at = e.add(a, g);
                  for (int64_t r = 0; r < m.rows; ++r) {
                    Value x = word(e.i32(), r, at, digit * blockK / 4);
                    for (int64_t i = 0; i < n; ++i)
                      next.push_back(dotBytes(e, c[r * n + i], w[i], x));
                  }
                  return next;
                });
}

// One sum for all digits, the highest first. Of twelve bits the codes are those
// of the digit.
Values Bytes::unpackedBlocks(ValueRange inits) {
  const int64_t bytes = blockBytes();
  return e.loop(
      e.cst(0), o.k, 1, inits, [&](Value step, ValueRange c) -> Values {
        Values next(c);
        prefetchStep(e, m, o, step);
        Value offset = e.mul(step, bytes), block = e.at(o.b, offset),
              a = e.mul(step, blockWords(form));
        int64_t digit = 0;
        for (auto [group, count] : llvm::enumerate(digitGroups(form))) {
          Values sums(m.rows * n, zeros());
          for (int64_t j = 0; twelve && j < m.rows * n; ++j)
            sums[j] = start(j / n, a);
          for (int64_t d = 0; d < count; ++d, ++digit) {
            for (Value &sum : sums)
              if (d && !twelve)
                sum = joinDigits(e, sum, {});
            sums = unpackedDots(block, a, digit, sums);
          }
          for (int64_t i = 0; i < n; ++i) {
            auto of = scales(offset, i);
            for (int64_t r = 0; r < m.rows; ++r)
              next[r * n + i] =
                  scaled(next[r * n + i], sums[r * n + i], of, r, a, group);
          }
        }
        return next;
      });
}

static std::string name(const MicroKernel &m, const TargetDesc &t) {
  return fmt::format(
      "micro_bytes_{}{}_{}x{}{}{}_p{}", gpt::stringifyStorage(m.storage).str(),
      m.digits > 1 ? fmt::format("_{}", m.digits) : "", m.rows,
      m.panels * m.vectors * t.lanes, m.packedRows ? "_packed" : "",
      m.accumulate ? "_acc"
      : m.stream   ? "_stream"
                   : "",
      m.panels);
}

void gptc::cpu::callByteKernel(Emitter &outer, const MicroKernel &m,
                               const MicroOperands &o) {
  outer.call(name(m, outer.target), o.all(), [&](Emitter &e, ValueRange v) {
    MicroOperands in = MicroOperands::from(v);
    Bytes k{e, m, in};
    const bool quads = m.storage == Storage::I8x4;
    Type t = e.vec(quads ? e.i32() : e.f32());
    Values acc;
    auto zero = [&] { return quads ? e.constInt(t, 0) : e.constFp(t, 0); };
    auto forC = [&](function_ref<void(Value)> body) {
      for (int64_t r = 0; r < m.rows; ++r)
        for (int64_t i = 0; i < k.n; ++i)
          body(k.cAt(r, i));
    };
    if (m.digits > 1 && !m.packedRows) {
      if (!m.accumulate)
        forC([&](Value at) { e.store(zero(), at); });
      return k.blocksOfDigits();
    }
    forC([&](Value at) {
      acc.push_back(m.accumulate ? e.load(t, at) : zero());
    });
    prefetchNextC(e, m, in);
    acc = quads          ? k.quads(acc)
          : m.digits > 1 ? k.unpackedBlocks(acc)
                         : k.blocks(acc);
    int64_t next = 0;
    forC([&](Value at) { e.store(acc[next++], at); });
  });
}

void gptc::cpu::callScaleBytes(Emitter &outer, const ByteScales &s) {
  std::string fn =
      fmt::format("scale_bytes_{}_{}_{}", s.rowStep, s.sumStep, s.ldc);
  outer.call(fn, {s.rows, s.row, s.panel, s.c}, [&](Emitter &e, ValueRange v) {
    const int64_t lanes = e.target.lanes;
    e.loop(e.cst(0), v[0], 1, [&](Value r) {
      Value meta = e.elem(v[1], r, s.rowStep);
      Value scale = e.splat(e.load(e.f32(), meta), lanes),
            sum = e.splat(e.load(e.i32(), e.at(meta, s.sumStep)), lanes);
      for (int64_t i = 0; i < e.target.panelWidth(); i += lanes) {
        Value at = e.at(e.elem(v[3], e.mul(r, s.ldc)), i * 4);
        Value x =
            arith::AddIOp::create(e.b, e.loc, e.load(e.vec(e.i32()), at), sum);
        x = arith::SIToFPOp::create(e.b, e.loc, e.vec(e.f32()), x);
        Value d = e.load(e.vec(e.f32()), e.at(v[2], i * 4));
        e.store(e.fmul(x, e.fmul(d, scale)), at);
      }
    });
  });
}
