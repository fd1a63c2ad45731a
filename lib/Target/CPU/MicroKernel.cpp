//===- MicroKernel.cpp - register tiles of a GEMM -------------------------===//
#include "MicroKernel.h"
#include "gptc/Format/WeightLayout.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cpu;
using gpt::Storage;

static bool isBlock(Storage s) {
  return s == Storage::Q8_0 || s == Storage::Q4_0 || s == Storage::Q4_1;
}

static int64_t blockBytes(Storage s, int64_t nr) {
  return s == Storage::Q8_0 ? nr * 34 : s == Storage::Q4_0 ? nr * 18 : nr * 20;
}

int64_t gptc::cpu::panelBytes(Storage s, int64_t nr, int64_t k) {
  if (isBlock(s))
    return blockBytes(s, nr) * (k / 32);
  return nr * k * (s == Storage::F32 ? 4 : 2);
}

int64_t gptc::cpu::panelsFor(const TargetDesc &t, int64_t rows,
                             Storage storage) {
  // Six registers for weights and the broadcast. Decoding blocks keeps the
  // ports busy with two panels, and their scales and minimums take registers of
  // their own.
  int64_t p = isBlock(storage) ? 2 : 4;
  while (p > 1 && rows * p * 2 > t.registers - 6)
    p /= 2;
  return p;
}

// f16 bits to f32 where the target has no conversion: the exponent is rebiased
// by an exact multiplication.
static Value halfToFloat(Emitter &e, Value h) {
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
  return e.load(type(e.f32()), p);
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

/// Asks for `bytes` bytes from p on, a cache line at a time.
static void prefetch(Emitter &e, Value p, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += 64)
    LLVM::Prefetch::create(e.b, e.loc, e.at(p, i), /*rw=*/0, /*hint=*/3,
                           /*cache=*/1);
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
    const int64_t size = m.storage == Storage::F32 ? 4 : 2;
    Values base;
    for (int64_t p = 0; p < m.panels; ++p)
      base.push_back(panel(p));
    Value pitch = e.mul(o.ldb, size);
    return e.loop(e.cst(0), o.k, 1, inits, [&](Value k, ValueRange carried) {
      Values w;
      Value row = e.mul(k, pitch);
      const int64_t rowBytes = m.vectors * lanes * size;
      for (int64_t p = 0; m.stream && p < m.panels; ++p)
        prefetch(e, e.at(e.at(base[p], row), 32 * rowBytes), rowBytes);
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
          prefetch(e, e.at(panel(p), e.mul(e.add(block, 4), bytes)), bytes);
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
          for (int64_t r = 0; r < m.rows; ++r) {
            Value at = m.packedRows
                           ? e.at(e.elem(in.a, e.mul(k, m.packedRows)), r * 4)
                           : e.elem(rowBase[r], k);
            Value x = e.splat(e.load(e.f32(), at), lanes);
            for (int64_t i = 0; i < n; ++i)
              next.push_back(e.fma(x, w[i], c[r * n + i]));
          }
          return next;
        });
        for (int64_t r = 0; r < m.rows; ++r)
          for (int64_t i = 0; i < n; ++i)
            e.store(acc[r * n + i], cAt(r, i));
      });
}

void gptc::cpu::callUnpackPanel(Emitter &outer, Storage storage, Value panel,
                                Value out, Value k) {
  std::string fn =
      fmt::format("unpack_{}_n{}", gpt::stringifyStorage(storage).str(),
                  outer.target.panelWidth());
  outer.call(fn, {panel, out, k}, [&](Emitter &e, ValueRange v) {
    const int64_t nr = e.target.panelWidth(), lanes = e.target.lanes;
    MicroKernel m{/*rows=*/1};
    m.storage = storage;
    MicroOperands o{{}, {}, v[0], e.cst(0), e.cst(nr), {}, {}, v[2]};
    forEachK(e, m, o, {}, [&](Value kk, ValueRange w, ValueRange) {
      for (int64_t i = 0; i < 2; ++i)
        e.store(w[i], e.at(e.elem(v[1], e.mul(kk, nr)), i * lanes * 4));
      return Values();
    });
  });
}

Value gptc::cpu::loadPacked(Emitter &e, Storage s, Value base, Value n, Value k,
                            int64_t inFeatures) {
  const int64_t nr = e.target.panelWidth();
  Value panel = e.at(base, e.mul(e.div(n, nr), panelBytes(s, nr, inFeatures)));
  Value column = e.rem(n, nr);
  if (!isBlock(s))
    return loadDense(
        e, s,
        e.elem(panel, e.add(e.mul(k, nr), column), s == Storage::F32 ? 4 : 2),
        0);
  Value block = e.at(panel, e.mul(e.div(k, 32), blockBytes(s, nr)));
  Value inner = e.rem(k, 32);
  Value scale =
      halfToFloat(e, e.load(e.b.getF16Type(), e.elem(block, column, 2)));
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
