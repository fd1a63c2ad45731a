//===- OnlineSoftmax.cpp - the softmax of a chunk of keys -----------------===//
//
// Rows of a block as many at a time as a vector has lanes: their maxima and
// sums, each first lane by lane, become one vector of rows by a transposing
// tree, so that what is left to do for a row, two powers and a few sums, is
// done for all at once.
//
//===----------------------------------------------------------------------===//
#include "Attention.h"
#include "MicroKernel.h"
#include <numeric>

using namespace mlir;
using namespace gptc;
using namespace gptc::cpu;

static constexpr double log2e = 1.44269504088896341;

/// 0, 1, ... as i32.
static Value laneNumbers(Emitter &e) {
  SmallVector<int32_t> index(e.target.lanes);
  std::iota(index.begin(), index.end(), 0);
  return arith::ConstantOp::create(
      e.b, e.loc,
      DenseElementsAttr::get(e.vec(e.i32()), ArrayRef<int32_t>(index)));
}

/// An i64 below 2^31 in every lane, as i32.
static Value everyLane(Emitter &e, Value x) {
  return e.splat(arith::TruncIOp::create(e.b, e.loc, e.i32(), x),
                 e.target.lanes);
}

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
    difference = e.fmul(difference, e.constFp(difference.getType(), log2e));
  return emitExp2(e, difference);
}

// Vectors of scores that are read for the rows of a vector from `row` on: up to
// the last key that any row of their tiles of outputs sees.
Value Attention::lastVector(const BlockRange &b, Value row) {
  int64_t most = 1;
  for (AttentionTile tile : attentionTiles(p, p.dv))
    most = std::max(most, tile.rows);
  Value last =
      e.min(e.add(row, p.lanes + most - 2), e.sub(e.add(b.row0, b.rows), 1));
  return e.ceilDiv(seen(last, b.keyBase), p.lanes);
}

// A vector of a row's scores from key `first` of the chunk on.
Value Attention::rowScore(Value s, const BlockRange &b, Value row,
                          Value first) {
  Value x = e.load(e.vec(e.f32()), e.elem(s, first));
  return p.plain ? x : score(x, row, e.add(b.keyBase, first));
}

// `to`: vectors that the row has, whose keys it may not all see; null if it
// sees the whole chunk.
void Attention::rowMaximum(const BlockRange &b, Value row, Value to) {
  Type vt = e.vec(e.f32());
  Value inBlock = e.sub(row, b.row0), none = e.infinity(vt, true);
  Value s = elem(p.scores, e.mul(inBlock, p.sPitch));
  Value best = none;
  if (!to) {
    for (int64_t i = 0; i < p.chunk; i += p.lanes) {
      Value x = rowScore(s, b, row, e.cst(i));
      if (!p.plain)
        e.store(x, e.at(s, i * 4));
      best = e.fmax(best, x);
    }
  } else {
    auto wide = [&](Value keys) { // of the chunk
      return everyLane(e, e.max(e.min(keys, e.cst(p.chunk)), e.cst(0)));
    };
    Value limit = e.sub(word(p.limit, row), b.keyBase), end = wide(limit),
          begin = window ? wide(e.sub(limit, *window)) : Value();
    auto below = [&](Value x, Value y) {
      return Value(
          arith::CmpIOp::create(e.b, e.loc, arith::CmpIPredicate::slt, x, y));
    };
    best = e.loop(b.from, e.mul(to, p.lanes), p.lanes, Values{best},
                  [&](Value first, ValueRange carried) -> Values {
                    Value key = e.add(laneNumbers(e), everyLane(e, first));
                    Value x = e.select(below(key, end),
                                       rowScore(s, b, row, first), none);
                    if (window)
                      x = e.select(below(key, begin), none, x);
                    e.store(x, e.elem(s, first));
                    return {e.fmax(carried[0], x)};
                  })[0];
  }
  e.store(best, elem(p.lanewise, e.mul(inBlock, p.lanes)));
}

// A row's result is written and its tile's successor read at a stride of all
// heads, which the hardware does not foresee.
void Attention::fetchAhead(Value row) {
  for (int64_t i = 0; i < 2; ++i) {
    Value at = e.load(e.ptr(), e.at(elem(p.ahead, row, 16), i * 8));
    prefetch(e, at, p.d * 4, /*cacheLevel=*/2);
  }
}

void Attention::rowExponentials(const BlockRange &b, Value row, Value to) {
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
  if (!to)
    for (int64_t i = 0; i < p.chunk / p.lanes; ++i)
      total = step(e.cst(i), total);
  else
    total = e.loop(e.div(b.from, p.lanes), to, 1, Values{total},
                   [&](Value i, ValueRange carried) -> Values {
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
    rows.push_back(
        e.load(e.vec(e.f32()), elem(p.lanewise, e.mul(e.add(inBlock, r), n))));
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

/// x, 0 in place of -inf: for rows that have seen no key yet any finite
/// reference will do, since their exponentials are all 0.
static Value finite(Emitter &e, Value x) {
  Value none = arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::OEQ, x,
                                     e.infinity(x.getType(), true));
  return e.select(none, e.constFp(x.getType(), 0), x);
}

void Attention::findMaxima(const BlockRange &b, Value inBlock) {
  Value m = reduceRows(inBlock, [&](Value x, Value y) { return e.fmax(x, y); });
  e.store(m, e.elem(b.part.maximum, inBlock));
  e.store(finite(e, m), elem(p.reference, inBlock));
}

// M', a, b and L' of a vector of rows.
void Attention::takeSums(Value row0, Value row, const ChunkPart &part) {
  Type vt = e.vec(e.f32());
  Value m = e.load(vt, e.elem(part.maximum, row)),
        l = e.load(vt, e.elem(part.sum, row));
  Value maximum = elem(p.maximum, e.add(row0, row)),
        sum = elem(p.sum, e.add(row0, row));
  Value old = e.load(vt, maximum), next = e.fmax(old, m);
  Value reference = finite(e, next);
  Value before = power(e.fsub(old, reference)),
        now = power(e.fsub(m, reference));
  e.store(next, maximum);
  e.store(e.fma(l, now, e.fmul(e.load(vt, sum), before)), sum);
  e.store(before, elem(p.oldFactor, row));
  e.store(now, elem(p.newFactor, row));
}

void Attention::softmax(const BlockRange &b, Value whole) {
  auto rows = [&](bool all) {
    e.loop(e.cst(0), b.rows, p.lanes, [&](Value first) {
      Value from = e.add(b.row0, first),
            end = e.min(e.add(from, p.lanes), e.add(b.row0, b.rows));
      Value to = all ? Value() : lastVector(b, from);
      e.loop(from, end, 1, [&](Value row) { rowMaximum(b, row, to); });
      findMaxima(b, first);
      e.loop(from, end, 1, [&](Value row) {
        fetchAhead(row);
        rowExponentials(b, row, to);
      });
      Value l =
          reduceRows(first, [&](Value x, Value y) { return e.fadd(x, y); });
      e.store(l, e.elem(b.part.sum, first));
    });
  };
  e.ifThen(
      whole, [&] { rows(true); }, [&] { rows(false); });
}
