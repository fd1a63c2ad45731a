//===- MicroKernel.cpp - register tiles of a GEMM -------------------------===//
#include "ByteKernel.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cpu;
using gpt::Storage;

int64_t gptc::cpu::panelsFor(const TargetDesc &t, int64_t rows, ByteForm form) {
  // Accumulators beside several digits lie in memory.
  if (form.digits > 1)
    return 4;
  // Six registers for weights and the broadcast. Decoding blocks keeps the
  // ports busy with two panels, and their scales and minimums take registers of
  // their own.
  int64_t p = isBlock(form.storage) ? 2 : 4;
  // Sums of blocks of int8 have two registers each.
  if (isBlock(form.storage) && form.digits)
    rows *= 2;
  while (p > 1 && rows * p * 2 > t.registers - 6)
    p /= 2;
  return p;
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

void gptc::cpu::prefetch(Emitter &e, Value p, int64_t bytes, int cacheLevel) {
  for (int64_t i = 0; i < bytes; i += 64)
    LLVM::Prefetch::create(e.b, e.loc, e.at(p, i), /*rw=*/0,
                           /*hint=*/4 - cacheLevel, /*cache=*/1);
}

void gptc::cpu::prefetchAhead(Emitter &e, const MicroKernel &m,
                              const MicroOperands &o, Value k,
                              int64_t rowBytes) {
  if (!m.stream)
    return;
  auto ask = [&](int64_t ahead, int level) {
    Value row = e.add(k, ahead), over = e.sub(row, o.k);
    Value here = e.lt(over, e.cst(0));
    Value at = e.elem(e.select(here, o.b, o.next), e.select(here, row, over),
                      rowBytes);
    for (int64_t p = 0; p < m.panels; ++p)
      prefetch(e, e.at(at, e.mul(o.panelStride, p)), rowBytes, level);
  };
  // So much of all panels is under way, a quarter of L1. A single stream of
  // many rows comes to L2 first, since L1 has few requests to memory at a time.
  constexpr int64_t underWay = 12 << 10, near = 1 << 10;
  const bool single = m.panels == 1 && !isBlock(m.storage);
  ask(std::max<int64_t>(underWay / (m.panels * rowBytes), 1), single ? 2 : 1);
  if (single)
    ask(std::max<int64_t>(near / rowBytes, 1), 1);
}

void gptc::cpu::prefetchStep(Emitter &e, const MicroKernel &m,
                             const MicroOperands &o, Value k) {
  if (m.ahead)
    prefetch(e, e.at(o.next, e.mul(k, m.ahead)), m.ahead, 2);
}

void gptc::cpu::prefetchNextC(Emitter &e, const MicroKernel &m,
                              const MicroOperands &o) {
  for (int64_t r = 0; r < m.rows && m.packedRows; ++r)
    prefetch(e, e.elem(o.c, e.mul(o.ldc, m.rows + r)),
             m.panels * m.vectors * e.target.lanes * 4, 1);
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
      prefetchAhead(e, m, o, k, rowBytes);
      prefetchStep(e, m, o, k);
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
  MicroOperands inBlocks = o;
  inBlocks.k = e.div(o.k, 32);
  return e.loop(
      e.cst(0), inBlocks.k, 1, inits, [&](Value block, ValueRange carried) {
        Values scale, minimum, data;
        prefetchAhead(e, m, inBlocks, block, bytes);
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

/// The number at p in every lane; `repeat` of it follow one another there.
static Value broadcast(Emitter &e, Type t, Value p, int64_t repeat) {
  const int64_t lanes = e.target.lanes;
  if (repeat == 1)
    return e.splat(e.load(t, p), lanes);
  Value pair = e.splat(e.load(e.f64(), p), lanes / repeat);
  return vector::BitCastOp::create(e.b, e.loc, e.vec(t), pair);
}

void gptc::cpu::callMicroKernel(Emitter &outer, const MicroKernel &m,
                                const MicroOperands &o) {
  if (m.digits)
    return callByteKernel(outer, m, o);
  outer.call(
      name(m, outer.target),
      o.all(), [&](Emitter &e, ValueRange v) {
        MicroOperands in = MicroOperands::from(v);
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
        prefetchNextC(e, m, in);
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
                                  r * m.repeat * 4)
                           : e.elem(rowBase[r], word);
            auto number = [&](int64_t i, Type t) {
              int64_t next = 4 * std::max<int64_t>(m.packedRows, 1);
              return broadcast(e, t, e.at(at, i * next), m.repeat);
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
    MicroOperands o{{}, {}, v[0], e.cst(0), e.cst(nr), {}, {}, v[2], {}};
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
