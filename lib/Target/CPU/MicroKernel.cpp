//===- MicroKernel.cpp - register tiles of a GEMM -------------------------===//
#include "ByteKernel.h"
#include "gptc/Format/WeightLayout.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cpu;
using gpt::Storage;

static bool isBlock(Storage s) {
  return s == Storage::Q8_0 || s == Storage::Q8_0x4 || s == Storage::Q4_0 ||
         s == Storage::Q4_1;
}

static int64_t blockBytes(Storage s, int64_t nr) {
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

int64_t gptc::cpu::panelsFor(const TargetDesc &t, int64_t rows,
                             Storage storage, bool bytes) {
  // Six registers for weights and the broadcast. Decoding blocks keeps the
  // ports busy with two panels, and their scales and minimums take registers of
  // their own.
  int64_t p = isBlock(storage) ? 2 : 4;
  // Sums of blocks of bytes have two registers each.
  if (bytes && isBlock(storage))
    rows *= 2;
  while (p > 1 && rows * p * 2 > t.registers - 6)
    p /= 2;
  return p;
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

/// The bf16 in the high or low half of words.
static Value halfOfPair(Emitter &e, Value words, bool high) {
  Type i = words.getType();
  Value bits =
      high ? Value(arith::AndIOp::create(e.b, e.loc, words,
                                         e.constInt(i, int32_t(0xffff0000))))
           : Value(arith::ShLIOp::create(e.b, e.loc, words, e.constInt(i, 16)));
  return arith::BitcastOp::create(e.b, e.loc, e.sameShape(words, e.f32()),
                                  bits);
}

/// acc + the products of two pairs of bf16, lane by lane.
static Value dotPairs(Emitter &e, Value acc, Value x, Value w) {
  Type pairs = e.vec(2 * e.target.lanes, e.b.getBF16Type());
  auto paired = [&](Value v) {
    return Value(vector::BitCastOp::create(e.b, e.loc, cast<VectorType>(pairs), v));
  };
  auto intrinsic = e.b.getStringAttr("llvm.x86.avx512bf16.dpbf16ps.512");
  return LLVM::CallIntrinsicOp::create(e.b, e.loc, acc.getType(), intrinsic,
                                       ValueRange{acc, paired(x), paired(w)})
      .getResult(0);
}

/// The bits of f32 numbers rounded to bf16, to nearest, ties to even: the low
/// half is 0. Without a conversion in the CPU, LLVM would call a library.
static Value roundedBits(Emitter &e, Value v) {
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

/// Two vectors of f32 as words of pairs of bf16.
static Value roundToPairs(Emitter &e, Value even, Value odd) {
  Value low = roundedBits(e, even);
  low = arith::ShRUIOp::create(e.b, e.loc, low, e.constInt(low.getType(), 16));
  return arith::OrIOp::create(e.b, e.loc, low, roundedBits(e, odd));
}

static Value bf16ToFloat(Emitter &e, Value bits) {
  Type i = e.sameShape(bits, e.i32());
  Value wide = arith::ExtUIOp::create(e.b, e.loc, i, bits);
  wide = arith::ShLIOp::create(e.b, e.loc, wide, e.constInt(i, 16));
  return arith::BitcastOp::create(e.b, e.loc, e.sameShape(bits, e.f32()), wide);
}

/// One element or vector of a dense format.
static Value loadDense(Emitter &e, Storage s, Value p, int64_t lanes) {
  auto type = [&](Type t) { return lanes ? Type(e.vec(lanes, t)) : t; };
  if (s == Storage::F16)
    return halfToFloat(e, e.load(type(e.b.getF16Type()), p));
  if (s == Storage::BF16)
    return bf16ToFloat(e, e.load(type(e.b.getI16Type()), p));
  return e.load(type(s == Storage::BF16x2 ? e.i32() : e.f32()), p);
}

/// Bytes of a row's element: of a pair of rows of bf16x2.
static int64_t denseBytes(Storage s) {
  return s == Storage::F16 || s == Storage::BF16 ? 2 : 4;
}

/// Four-bit codes in bits [4s, 4s + 4) of the words, as floats minus `zero`.
static Value nibbles(Emitter &e, Value words, int64_t s, int zero,
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

static Value nibbleTable(Emitter &e, Storage s) {
  if (!e.target.permute16 || (s != Storage::Q4_0 && s != Storage::Q4_1))
    return {};
  SmallVector<float> t;
  for (int i = 0; i < 16; ++i)
    t.push_back(s == Storage::Q4_0 ? i - 8 : i);
  return arith::ConstantOp::create(
      e.b, e.loc,
      DenseElementsAttr::get(e.vec(16, e.f32()), ArrayRef<float>(t)));
}

void gptc::cpu::prefetch(Emitter &e, Value p, int64_t bytes, int cacheLevel) {
  for (int64_t i = 0; i < bytes; i += 64)
    LLVM::Prefetch::create(e.b, e.loc, e.at(p, i), /*rw=*/0,
                           /*hint=*/4 - cacheLevel, /*cache=*/1);
}

using Body =
    llvm::function_ref<Values(Value k, ValueRange weights, ValueRange carried)>;

/// Runs body for k = 0 .. K-1 with the P * V weight vectors of row k.
static Values forEachK(Emitter &e, const MicroKernel &m, const MicroOperands &o,
                       ValueRange inits, Body body) {
  const int64_t lanes = e.target.lanes, nr = e.target.panelWidth(),
                n = m.panels * m.vectors;
  auto panel = [&](int64_t p) { return e.at(o.b, e.mul(o.panelStride, p)); };
  if (!isBlock(m.storage)) {
    const int64_t size = denseBytes(m.storage);
    Values base;
    for (int64_t p = 0; p < m.panels; ++p)
      base.push_back(panel(p));
    Value pitch = e.mul(o.ldb, size);
    return e.loop(e.cst(0), o.k, 1, inits, [&](Value k, ValueRange carried) {
      Values w;
      Value row = e.mul(k, pitch);
      const int64_t rowBytes = m.vectors * lanes * size;
      for (int64_t p = 0; m.stream && p < m.panels; ++p)
        prefetch(e, e.at(e.at(base[p], row), 32 * rowBytes), rowBytes, 1);
      for (int64_t i = 0; i < n; ++i)
        w.push_back(loadDense(
            e, m.storage,
            e.at(e.at(base[i / m.vectors], row), i % m.vectors * lanes * size),
            lanes));
      return body(k, w, carried);
    });
  }
  const int64_t bytes = blockBytes(m.storage, nr);
  const bool q8 = m.storage == Storage::Q8_0, q41 = m.storage == Storage::Q4_1;
  const int64_t codes = nr * (q41 ? 4 : 2), inWord = q8 ? 4 : 8;
  Value table = nibbleTable(e, m.storage);
  return e.loop(
      e.cst(0), e.div(o.k, 32), 1, inits, [&](Value block, ValueRange carried) {
        Values scale, minimum, data;
        for (int64_t p = 0; m.stream && p < m.panels; ++p)
          prefetch(e, e.at(panel(p), e.mul(e.add(block, 4), bytes)), bytes, 1);
        for (int64_t i = 0; i < n; ++i) {
          Value at = e.at(panel(i / m.vectors), e.mul(block, bytes));
          int64_t column = i % m.vectors * lanes;
          Type half = e.vec(e.b.getF16Type());
          scale.push_back(halfToFloat(e, e.load(half, e.at(at, column * 2))));
          if (q41)
            minimum.push_back(
                halfToFloat(e, e.load(half, e.at(at, nr * 2 + column * 2))));
          data.push_back(e.at(at, codes + column * (q8 ? 1 : 4)));
        }
        // A group is the k's of one word (or four rows of bytes); its k's are
        // unrolled.
        return e.loop(
            e.cst(0), e.cst(32 / inWord), 1, carried,
            [&](Value group, ValueRange inner) {
              Values words, acc(inner);
              for (int64_t i = 0; i < n && !q8; ++i)
                words.push_back(e.load(e.vec(e.i32()),
                                       e.at(data[i], e.mul(group, nr * 4))));
              Value k0 = e.add(e.mul(block, 32), e.mul(group, inWord));
              for (int64_t s = 0; s < inWord; ++s) {
                Values w;
                for (int64_t i = 0; i < n; ++i) {
                  Value v;
                  if (q8) {
                    Value raw = e.load(
                        e.vec(e.i8()),
                        e.at(data[i], e.add(e.mul(group, 4 * nr), s * nr)));
                    v = arith::ExtSIOp::create(e.b, e.loc, e.vec(e.i32()), raw);
                    v = arith::SIToFPOp::create(e.b, e.loc, e.vec(e.f32()), v);
                  } else {
                    v = nibbles(e, words[i], s, q41 ? 0 : 8, table);
                  }
                  w.push_back(q41 ? e.fma(v, scale[i], minimum[i])
                                  : e.fmul(v, scale[i]));
                }
                acc = body(e.add(k0, s), w, acc);
              }
              return acc;
            });
      });
}

static std::string name(const MicroKernel &m, const TargetDesc &t) {
  return fmt::format("micro_{}_{}x{}{}{}",
                     gpt::stringifyStorage(m.storage).str(), m.rows,
                     m.panels * m.vectors * t.lanes,
                     m.packedRows ? "_packed" : "",
                     m.accumulate ? "_acc"
                     : m.stream   ? "_stream"
                                  : "") +
         (m.panels > 1 ? fmt::format("_p{}", m.panels) : "");
}

void gptc::cpu::callMicroKernel(Emitter &outer, const MicroKernel &m,
                                const MicroOperands &o) {
  if (m.bytes)
    return callByteKernel(outer, m, o);
  outer.call(
      name(m, outer.target),
      {o.a, o.lda, o.b, o.panelStride, o.ldb, o.c, o.ldc, o.k},
      [&](Emitter &e, ValueRange v) {
        MicroOperands in{v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]};
        const int64_t lanes = e.target.lanes, n = m.panels * m.vectors;
        Type vt = e.vec(e.f32());
        auto cAt = [&](int64_t r, int64_t i) {
          return e.at(e.elem(in.c, e.mul(in.ldc, r)), i * lanes * 4);
        };
        Values acc;
        for (int64_t r = 0; r < m.rows; ++r)
          for (int64_t i = 0; i < n; ++i)
            acc.push_back(m.accumulate ? e.load(vt, cAt(r, i))
                                       : e.constFp(vt, 0));
        Values rowBase;
        for (int64_t r = 0; r < m.rows && !m.packedRows; ++r)
          rowBase.push_back(e.elem(in.a, e.mul(in.lda, r)));
        acc = forEachK(e, m, in, acc, [&](Value k, ValueRange w, ValueRange c) {
          Values next;
          const bool pairs = m.storage == Storage::BF16x2,
                     halves = pairs && !e.target.bf16Dot;
          Values low, high;
          for (int64_t i = 0; i < n && halves; ++i) {
            low.push_back(halfOfPair(e, w[i], false));
            high.push_back(halfOfPair(e, w[i], true));
          }
          for (int64_t r = 0; r < m.rows; ++r) {
            Value word = halves ? e.mul(k, 2) : k;
            Value at = m.packedRows
                           ? e.at(e.elem(in.a, e.mul(word, m.packedRows)),
                                  r * 4)
                           : e.elem(rowBase[r], word);
            auto number = [&](int64_t i, Type t) {
              int64_t next = 4 * std::max<int64_t>(m.packedRows, 1);
              return e.splat(e.load(t, e.at(at, i * next)), lanes);
            };
            if (halves) {
              Value even = number(0, e.f32()), odd = number(1, e.f32());
              for (int64_t i = 0; i < n; ++i)
                next.push_back(
                    e.fma(odd, high[i], e.fma(even, low[i], c[r * n + i])));
              continue;
            }
            Value x = number(0, pairs ? e.i32() : e.f32());
            for (int64_t i = 0; i < n; ++i)
              next.push_back(pairs ? dotPairs(e, c[r * n + i], x, w[i])
                                   : e.fma(x, w[i], c[r * n + i]));
          }
          return next;
        });
        for (int64_t r = 0; r < m.rows; ++r)
          for (int64_t i = 0; i < n; ++i)
            e.store(acc[r * n + i], cAt(r, i));
      });
}

/// Pairs of a dense panel's rows, the last one with 0 where K is odd.
static void unpackDensePairs(Emitter &e, Storage storage, Value panel,
                             Value out, Value k) {
  const int64_t nr = e.target.panelWidth(), lanes = e.target.lanes,
                size = denseBytes(storage);
  auto row = [&](Value at, int64_t i) {
    return loadDense(e, storage,
                     e.at(e.elem(panel, e.mul(at, nr), size), i * lanes * size),
                     lanes);
  };
  auto store = [&](Value pair, Value even, Value odd, int64_t i) {
    e.store(roundToPairs(e, even, odd),
            e.at(e.elem(out, e.mul(pair, nr)), i * lanes * 4));
  };
  Value pairs = e.div(k, 2);
  e.loop(e.cst(0), pairs, 1, [&](Value p) {
    for (int64_t i = 0; i < 2; ++i)
      store(p, row(e.mul(p, 2), i), row(e.add(e.mul(p, 2), 1), i), i);
  });
  e.loop(pairs, e.ceilDiv(k, 2), 1, [&](Value p) {
    for (int64_t i = 0; i < 2; ++i)
      store(p, row(e.mul(p, 2), i), e.constFp(e.vec(e.f32()), 0), i);
  });
}

void gptc::cpu::callUnpackPanel(Emitter &outer, Storage storage, Value panel,
                                Value out, Value k, Storage to) {
  const bool pairs = to == Storage::BF16x2;
  std::string fn = fmt::format(
      "unpack_{}_n{}{}", gpt::stringifyStorage(storage).str(),
      outer.target.panelWidth(), pairs ? "_bf16x2" : "");
  outer.call(fn, {panel, out, k}, [&](Emitter &e, ValueRange v) {
    const int64_t nr = e.target.panelWidth(), lanes = e.target.lanes;
    if (pairs && !isBlock(storage))
      return unpackDensePairs(e, storage, v[0], v[1], v[2]);
    MicroKernel m{/*rows=*/1};
    m.storage = storage;
    MicroOperands o{{}, {}, v[0], e.cst(0), e.cst(nr), {}, {}, v[2]};
    Values even; // a block's k come in order, unrolled
    forEachK(e, m, o, {}, [&](Value kk, ValueRange w, ValueRange) {
      if (pairs && even.empty()) {
        even.assign(w.begin(), w.end());
        return Values();
      }
      for (int64_t i = 0; i < 2; ++i) {
        Value row = pairs ? e.div(kk, 2) : kk;
        e.store(pairs ? roundToPairs(e, even[i], w[i]) : w[i],
                e.at(e.elem(v[1], e.mul(row, nr)), i * lanes * 4));
      }
      even.clear();
      return Values();
    });
  });
}

void gptc::cpu::callCopyRow(Emitter &outer, Storage storage, Value from,
                            Value to, int64_t k) {
  const bool rounds = storage == Storage::BF16x2;
  outer.call(
      fmt::format("{}_row_k{}", rounds ? "round" : "copy", k), {from, to},
      [&](Emitter &e, ValueRange v) {
        const int64_t lanes = e.target.lanes, whole = k / lanes * lanes;
        auto store = [&](Value x, Value at) {
          if (rounds && e.target.bf16Dot) {
            x = arith::TruncFOp::create(e.b, e.loc, e.vec(e.b.getBF16Type()),
                                        x);
            return e.store(x, e.elem(v[1], at, 2));
          }
          e.store(rounds ? roundedBits(e, x) : x, e.elem(v[1], at));
        };
        e.loop(e.cst(0), e.cst(whole), lanes, [&](Value i) {
          store(e.load(e.vec(e.f32()), e.elem(v[0], i)), i);
        });
        if (whole < k) {
          Value at = e.cst(whole);
          store(e.loadMasked(e.vec(e.f32()), e.elem(v[0], at),
                             e.firstLanes(e.cst(k - whole), lanes)),
                at);
        }
      });
}

/// Square blocks of words, by halves: rows that are n / 2 apart exchange
/// quadrants, then n / 4 apart, and so on.
static Values transpose(Emitter &e, Values rows) {
  const int64_t n = rows.size();
  for (int64_t half = n / 2; half >= 1; half /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t i = 0; i < n; ++i) {
      bool second = i & half;
      low.push_back(second ? n + (i ^ half) : i);
      high.push_back(second ? n + i : i | half);
    }
    Values next(n);
    for (int64_t r = 0; r < n; ++r)
      if (!(r & half)) {
        next[r] = e.shuffle(rows[r], rows[r | half], low);
        next[r | half] = e.shuffle(rows[r], rows[r | half], high);
      }
    rows = next;
  }
  return rows;
}

void gptc::cpu::callPackRows(Emitter &outer, int64_t packedRows, Value rows,
                             int64_t pitch, Value to, int64_t words) {
  outer.call(
      fmt::format("pack_{}x{}_pitch{}", packedRows, words, pitch), {rows, to},
      [&](Emitter &e, ValueRange v) {
        const int64_t lanes = e.target.lanes;
        Type vt = e.vec(e.i32());
        // As many rows as a vector has lanes at a time. What a store has too
        // much, the next one puts right: the last rows come first.
        for (int64_t r0 = (packedRows - 1) / lanes * lanes; r0 >= 0;
             r0 -= lanes)
          e.loop(e.cst(0), e.cst(words), lanes, [&](Value k) {
            Values block;
            for (int64_t r = 0; r < lanes; ++r) {
              int64_t row = std::min(r0 + r, packedRows - 1);
              block.push_back(
                  e.load(vt, e.elem(e.at(v[0], row * pitch * 4), k)));
            }
            block = transpose(e, block);
            Value at = e.at(e.elem(v[1], e.mul(k, packedRows)), r0 * 4);
            for (int64_t i = 0; i < lanes; ++i)
              e.store(block[i], e.at(at, i * packedRows * 4));
          });
      });
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
