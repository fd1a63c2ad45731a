//===- AttentionProducts.cpp - register tiles of attention ----------------===//
//
// Unlike a GEMM's, their sizes are all known but the number of keys, and the
// values of a chunk lie in pages: outputs stay in registers from page to page.
//
//===----------------------------------------------------------------------===//
#include "Attention.h"
#include "MicroKernel.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cpu;

// Accumulators, the vectors of a key and a broadcast fill the registers. Row
// counts divide a block.
AttentionTile gptc::cpu::attentionTile(const AttentionPlan &p,
                                       int64_t vectors) {
  static constexpr int64_t of32[] = {24, 12, 8, 6}, of16[] = {12, 6};
  return {p.registers >= 32 ? of32[vectors - 1] : of16[vectors - 1], vectors};
}

SmallVector<AttentionTile> gptc::cpu::attentionTiles(const AttentionPlan &p,
                                                     int64_t columns) {
  int64_t vectors = columns / p.lanes, most = p.registers >= 32 ? 4 : 2,
          tiles = (vectors + most - 1) / most;
  SmallVector<AttentionTile> all;
  for (int64_t i = 0; i < tiles; ++i)
    all.push_back(attentionTile(p, (vectors + tiles - 1 - i) / tiles));
  return all;
}

/// acc[rows][vectors] += numbers of A at `a`, `pitch` elements a row, times
/// vectors of B at `b`.
static Values multiplyAdd(Emitter &e, AttentionTile tile, Value a,
                          int64_t pitch, Value b, ValueRange acc) {
  const int64_t lanes = e.target.lanes, n = tile.vectors;
  Values w, next;
  for (int64_t i = 0; i < n; ++i)
    w.push_back(e.load(e.vec(e.f32()), e.at(b, i * lanes * 4)));
  for (int64_t r = 0; r < tile.rows; ++r) {
    Value x = e.splat(e.load(e.f32(), e.at(a, r * pitch * 4)), lanes);
    for (int64_t i = 0; i < n; ++i)
      next.push_back(e.fma(x, w[i], acc[r * n + i]));
  }
  return next;
}

static Values zeros(Emitter &e, AttentionTile tile) {
  return Values(tile.rows * tile.vectors, e.constFp(e.vec(e.f32()), 0));
}

static void storeTile(Emitter &e, AttentionTile tile, ValueRange acc, Value to,
                      int64_t pitch) {
  for (int64_t r = 0; r < tile.rows; ++r)
    for (int64_t i = 0; i < tile.vectors; ++i)
      e.store(acc[r * tile.vectors + i],
              e.at(to, (r * pitch + i * e.target.lanes) * 4));
}

void gptc::cpu::callScores(Emitter &outer, const AttentionPlan &p,
                           AttentionTile tile, Value q, Value keys,
                           Value scores, bool stream) {
  outer.call(fmt::format("attention_scores_{}x{}_d{}_page{}_pitch{}_{}{}",
                         tile.rows, tile.vectors * p.lanes, p.d, p.page,
                         p.qPitch, p.sPitch, stream ? "_stream" : ""),
             {q, keys, scores}, [&](Emitter &e, ValueRange v) {
               Values acc =
                   e.loop(e.cst(0), e.cst(p.d), 1, zeros(e, tile),
                          [&](Value k, ValueRange carried) {
                            Value b = e.elem(v[1], e.mul(k, p.page));
                            if (stream)
                              prefetch(e, e.at(b, 32 * p.page * 4),
                                       tile.vectors * p.lanes * 4, 1);
                            return multiplyAdd(e, tile, e.elem(v[0], k),
                                               p.qPitch, b, carried);
                          });
               storeTile(e, tile, acc, v[2], p.sPitch);
             });
}

void gptc::cpu::callValues(Emitter &outer, const AttentionPlan &p,
                           AttentionTile tile, Value probabilities,
                           Value valuePages, int64_t column, Value count,
                           Value out, bool stream) {
  const int64_t pitch = p.dense && !p.copiesValues ? p.d : p.dv;
  outer.call(
      fmt::format("attention_values_{}x{}_at{}_d{}_page{}_pitch{}_{}{}",
                  tile.rows, tile.vectors * p.lanes, column, p.d, p.page, pitch,
                  p.sPitch, stream ? "_stream" : ""),
      {probabilities, valuePages, count, out}, [&](Emitter &e, ValueRange v) {
        Values acc = e.loop(
            e.cst(0), v[2], p.page, zeros(e, tile),
            [&](Value first, ValueRange carried) {
              Value page =
                  e.load(e.ptr(), e.elem(v[1], e.div(first, p.page), 8));
              page = e.at(page, column * 4);
              Value keys = e.min(e.cst(p.page), e.sub(v[2], first));
              return e.loop(
                  e.cst(0), keys, 1, carried, [&](Value k, ValueRange inner) {
                    Value b = e.elem(page, e.mul(k, pitch));
                    if (stream)
                      prefetch(e, e.at(b, 32 * pitch * 4),
                               tile.vectors * p.lanes * 4, 1);
                    return multiplyAdd(e, tile, e.elem(v[0], e.add(first, k)),
                                       p.sPitch, b, inner);
                  });
            });
        storeTile(e, tile, acc, v[3], p.dv);
      });
}

// Rows past the last one are the last one again: they are read from where rows
// are, and hidden later.
void gptc::cpu::callPackKeys(Emitter &outer, const AttentionPlan &p, Value from,
                             Value count, Value to) {
  outer.call(
      fmt::format("attention_pack_keys_d{}_page{}", p.d, p.page),
      {from, count, to}, [&](Emitter &e, ValueRange v) {
        const int64_t n = e.target.lanes, whole = p.d / n * n;
        auto vt = e.vec(e.i32());
        e.loop(e.cst(0), v[1], n, [&](Value row) {
          Values rows;
          for (int64_t r = 0; r < n; ++r) {
            Value at = e.min(e.add(row, r), e.sub(v[1], 1));
            rows.push_back(e.elem(v[0], e.mul(at, p.d)));
          }
          auto copy = [&](Value k, int64_t columns) {
            Values block;
            Value mask =
                columns < n ? e.firstLanes(e.cst(columns), n) : Value();
            for (Value at : rows)
              block.push_back(mask ? e.loadMasked(vt, e.elem(at, k), mask)
                                   : e.load(vt, e.elem(at, k)));
            block = transposeWords(e, block);
            for (int64_t i = 0; i < columns; ++i)
              e.store(block[i],
                      e.elem(v[2], e.add(e.mul(e.add(k, i), p.page), row)));
          };
          e.loop(e.cst(0), e.cst(whole), n, [&](Value k) { copy(k, n); });
          if (whole < p.d)
            copy(e.cst(whole), p.d - whole);
        });
      });
}
