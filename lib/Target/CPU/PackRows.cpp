//===- PackRows.cpp - rows of A for the micro-kernels ---------------------===//
#include "MicroKernel.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cpu;
using gpt::Storage;

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

// Rows that are n / 2 apart exchange quadrants, then n / 4 apart, and so on.
Values gptc::cpu::transposeWords(Emitter &e, Values rows) {
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

void gptc::cpu::callPackRows(Emitter &outer, int64_t packedRows, int64_t repeat,
                             Value rows, int64_t pitch, Value to,
                             int64_t words) {
  outer.call(
      fmt::format("pack_{}x{}_pitch{}{}", packedRows, words, pitch,
                  repeat > 1 ? "_pairs" : ""),
      {rows, to},
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
              int64_t row = std::min(r0 + r, packedRows - 1) / repeat;
              block.push_back(
                  e.load(vt, e.elem(e.at(v[0], row * pitch * 4), k)));
            }
            block = transposeWords(e, block);
            Value at = e.at(e.elem(v[1], e.mul(k, packedRows)), r0 * 4);
            for (int64_t i = 0; i < lanes; ++i)
              e.store(block[i], e.at(at, i * packedRows * 4));
          });
      });
}
