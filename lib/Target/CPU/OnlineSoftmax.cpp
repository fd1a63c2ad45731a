//===- OnlineSoftmax.cpp - the softmax of a chunk of keys -----------------===//
//
// Rows of a block as many at a time as a vector has lanes: their maxima and
// sums, each first lane by lane, become one vector of rows by a transposing
// tree, so that what is left to do for a row, two powers and a few sums, is
// done for all at once.
//
//===----------------------------------------------------------------------===//
#include "Attention.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cpu;

static constexpr double log2e = 1.44269504088896341;

// A vector of products as scores; `key` is that of the first lane.
Value Attention::score(Value s, Value row, Value key) {
  if (op.getSoftcap())
    s = emitSoftcap(e, s, op.getSoftcap()->convertToDouble());
  if (p.alibi)
    s = emitAlibiBias(e, s, e.load(e.f32(), elem(p.slope, row)),
                      e.sub(key, word(p.position, row)));
  if (masks.empty())
    return s;
  // A mask ends with the keys, a page does not.
  Value lanes = e.firstLanes(e.sub(keyCount, key), p.lanes);
  for (auto [i, mask] : llvm::enumerate(masks)) {
    Type element = getElementTypeOrSelf(op.getMasks()[i].getType());
    Value offset = word(p.maskRows + int64_t(i) * p.rows * 8, row);
    Value m = mask.load(e, element, offset, key, lanes);
    s = emitMasked(e, s, m, asDouble(op.getFill()));
  }
  return s;
}

// e^difference, of numbers in q's unit.
Value Attention::power(Value difference) {
  if (!p.plain)
    difference =
        e.fmul(difference, e.constFp(difference.getType(), log2e));
  return emitExp2(e, difference);
}

// Vectors of scores that are read for a row: up to the last key that any row
// of its tile of outputs sees.
Value Attention::lastVector(const BlockRange &b, Value row) {
  int64_t most = 1;
  for (AttentionTile tile : attentionTiles(p, p.dv))
    most = std::max(most, tile.rows);
  Value last = e.min(e.add(row, most - 1), e.sub(e.add(b.row0, b.rows), 1));
  return e.ceilDiv(seen(last, b.keyBase), p.lanes);
}

// Vector i of a row's scores, -inf where a key is hidden.
Value Attention::vectorMaximum(Value s, const BlockRange &b, Value row,
                               Value i, bool hides) {
  Type vt = e.vec(e.f32());
  Value first = e.mul(i, p.lanes), at = e.elem(s, first);
  Value x = e.load(vt, at);
  if (!p.plain)
    x = score(x, row, e.add(b.keyBase, first));
  if (hides) {
    Value visible = e.sub(e.sub(word(p.limit, row), b.keyBase), first);
    x = e.select(visibleLanes(e, visible, window), x, e.infinity(vt, true));
  }
  if (hides || !p.plain)
    e.store(x, at);
  return x;
}

// `whole`: every key of the chunk is seen.
void Attention::rowMaximum(const BlockRange &b, Value row, bool whole) {
  Type vt = e.vec(e.f32());
  Value inBlock = e.sub(row, b.row0);
  Value s = elem(p.scores, e.mul(inBlock, p.sPitch));
  Value best = e.infinity(vt, true);
  auto run = [&](Value from, Value to, bool hides) {
    best = e.loop(from, to, 1, Values{best},
                  [&](Value i, ValueRange carried) -> Values {
                    Value x = vectorMaximum(s, b, row, i, hides);
                    return {e.fmax(carried[0], x)};
                  })[0];
  };
  if (whole && p.plain) {
    for (int64_t i = 0; i < p.chunk / p.lanes; ++i)
      best = e.fmax(best, vectorMaximum(s, b, row, e.cst(i), false));
  } else if (whole) {
    run(e.cst(0), e.cst(p.chunk / p.lanes), false);
  } else {
    Value from = e.div(b.from, p.lanes), to = lastVector(b, row);
    Value begin = from; // of the vectors that the row sees all of
    if (window) {
      Value hidden = e.sub(word(p.limit, row), e.add(b.keyBase, *window));
      hidden = e.min(e.max(hidden, e.cst(0)), e.cst(p.chunk));
      begin = e.min(e.max(e.ceilDiv(hidden, p.lanes), from), to);
      run(from, begin, true);
    }
    Value end = e.max(e.div(seen(row, b.keyBase), p.lanes), begin);
    run(begin, end, false);
    run(end, to, true);
  }
  e.store(best, elem(p.lanewise, e.mul(inBlock, p.lanes)));
}

void Attention::rowExponentials(const BlockRange &b, Value row, bool whole) {
  Type vt = e.vec(e.f32());
  Value inBlock = e.sub(row, b.row0);
  Value s = elem(p.scores, e.mul(inBlock, p.sPitch));
  Value m = e.splat(e.load(e.f32(), elem(p.reference, inBlock)), p.lanes);
  auto step = [&](Value i, Value total) {
    Value at = e.elem(s, e.mul(i, p.lanes));
    Value x = power(e.fsub(e.load(vt, at), m));
    e.store(x, at);
    return e.fadd(total, x);
  };
  Value total = e.constFp(vt, 0);
  if (whole)
    for (int64_t i = 0; i < p.chunk / p.lanes; ++i)
      total = step(e.cst(i), total);
  else
    total = e.loop(e.div(b.from, p.lanes), lastVector(b, row), 1,
                   Values{total}, [&](Value i, ValueRange carried) -> Values {
                     return {step(i, carried[0])};
                   })[0];
  e.store(total, elem(p.lanewise, e.mul(inBlock, p.lanes)));
}

// Lane r is row r's lanes combined, halves by halves: the order of laneMax and
// laneSum.
Value Attention::reduceRows(Value inBlock,
                            function_ref<Value(Value, Value)> combine) {
  const int64_t n = p.lanes;
  Values rows;
  for (int64_t r = 0; r < n; ++r)
    rows.push_back(e.load(
        e.vec(e.f32()), elem(p.lanewise, e.mul(e.add(inBlock, r), n))));
  for (int64_t half = n / 2; half >= 1; half /= 2) {
    SmallVector<int64_t> low, high;
    for (int64_t i = 0; i < n; ++i) {
      low.push_back(i & half ? n + (i ^ half) : i);
      high.push_back(i & half ? n + i : i | half);
    }
    for (int64_t r = 0; r < half; ++r)
      rows[r] = combine(e.shuffle(rows[r], rows[r + half], low),
                        e.shuffle(rows[r], rows[r + half], high));
  }
  return rows[0];
}

// m and M', and what they make of the sums so far and of the chunk's.
void Attention::takeMaxima(const BlockRange &b, Value inBlock) {
  Type vt = e.vec(e.f32());
  Value none = e.infinity(vt, true), zero = e.constFp(vt, 0);
  Value m = reduceRows(inBlock, [&](Value x, Value y) { return e.fmax(x, y); });
  Value at = elem(p.maximum, e.add(b.row0, inBlock)), old = e.load(vt, at);
  Value next = e.fmax(old, m);
  // A row that has seen no key yet: any finite reference will do, its
  // exponentials are all 0.
  auto finite = [&](Value x) {
    return e.select(arith::CmpFOp::create(e.b, e.loc,
                                          arith::CmpFPredicate::OEQ, x, none),
                    zero, x);
  };
  Value reference = finite(next);
  e.store(next, at);
  e.store(finite(m), elem(p.reference, inBlock));
  e.store(power(e.fsub(old, reference)), elem(p.oldFactor, inBlock));
  e.store(power(e.fsub(m, reference)), elem(p.newFactor, inBlock));
}

void Attention::takeSums(const BlockRange &b, Value inBlock) {
  Type vt = e.vec(e.f32());
  Value l = reduceRows(inBlock, [&](Value x, Value y) { return e.fadd(x, y); });
  Value at = elem(p.sum, e.add(b.row0, inBlock));
  Value before = e.fmul(e.load(vt, at), e.load(vt, elem(p.oldFactor, inBlock)));
  e.store(e.fma(l, e.load(vt, elem(p.newFactor, inBlock)), before), at);
}

void Attention::softmax(const BlockRange &b, Value whole) {
  auto rows = [&](bool all) {
    e.loop(e.cst(0), b.rows, p.lanes, [&](Value first) {
      Value from = e.add(b.row0, first),
            to = e.min(e.add(from, p.lanes), e.add(b.row0, b.rows));
      e.loop(from, to, 1, [&](Value row) { rowMaximum(b, row, all); });
      takeMaxima(b, first);
      e.loop(from, to, 1, [&](Value row) { rowExponentials(b, row, all); });
      takeSums(b, first);
    });
  };
  e.ifThen(whole, [&] { rows(true); }, [&] { rows(false); });
}
