//===- AttentionKernel.cpp - flash attention over chunks of keys ----------===//
#include "Attention.h"
#include "SimpleKernels.h"

using namespace mlir;
using namespace gptc;
using namespace gptc::cpu;

AttentionPlan::AttentionPlan(gpt::KernelOp kernel, const TargetDesc &t)
    : lanes(t.lanes), registers(t.registers) {
  auto op = cast<gpt::FlashAttentionOp>(kernel.kernelOp());
  AttentionSchedule schedule = readAttentionSchedule(kernel);
  dense = !op.getCache();
  alibi = op.getAlibi().has_value();
  maskCount = op.getMasks().size();
  plain = !alibi && !maskCount && !op.getSoftcap();
  groups = op.getGroups();
  d = dense ? op.getQ().getType().getShape().back()
            : op.getCache().getType().getHeadDim();
  dv = gptc_kv_value_pitch(d);
  copiesValues = dense && d != dv;
  page = schedule.keyBlock;
  chunk = schedule.chunk;
  tokens = schedule.tokens;
  block = schedule.rowBlock;
  rows = (tokens * groups + block - 1) / block * block;
  // A cache line more shifts rows of a power of two against each other.
  qPitch = d + 16;
  sPitch = chunk + 16;

  bytes = 0;
  auto place = [&](int64_t size) {
    int64_t at = bytes;
    bytes += (size + 63) / 64 * 64;
    return at;
  };
  q = place(rows * qPitch * 4);
  output = place(rows * dv * 4);
  maximum = place(rows * 4);
  sum = place(rows * 4);
  limit = place(rows * 8);
  position = place(alibi * rows * 8);
  slope = place(alibi * rows * 4);
  maskRows = place(maskCount * rows * 8);
  scores = place(block * sPitch * 4);
  part = place(block * dv * 4);
  lanewise = place(block * lanes * 4);
  reference = place(block * 4);
  oldFactor = place(block * 4);
  newFactor = place(block * 4);
  keyPages = place(pages() * 8);
  valuePages = place(pages() * 8);
  keys = place(dense * chunk * d * 4);
  values = place(copiesValues * chunk * dv * 4);
}

Attention::Attention(Emitter &e, KernelContext &c, gpt::FlashAttentionOp op,
                     const AttentionPlan &p)
    : e(e), p(p), op(op), window(windowOf(op.getWindow())), scratch(c.scratch),
      scale(op.getScale().convertToDouble()) {
  if (op.getAlibi())
    slopes = constantSlopes(e, c, *op.getAlibi());
  for (Value mask : op.getMasks())
    masks.emplace_back(e, c, mask);
  if (!masks.empty())
    keyCount = c.size(e, 1, c.rank(1) - 2);
  if (p.plain)
    scale *= 1.44269504088896341; // powers of 2
}

void Attention::begin() {
  e.loop(e.cst(0), e.cst(p.rows), p.lanes, [&](Value row) {
    Type vt = e.vec(e.f32());
    e.store(e.infinity(vt, true), elem(p.maximum, row));
    e.store(e.constFp(vt, 0), elem(p.sum, row));
  });
}

// One row: q scaled once, a zero output.
void Attention::loadQuery(Value row, const Query &query) {
  Type vt = e.vec(e.f32());
  Value to = elem(p.q, e.mul(row, p.qPitch));
  forColumns(e, e.cst(p.d), [&](Value i, Value mask) {
    Value x = loadVector(e, e.elem(query.q, i), mask);
    e.store(e.fmul(x, e.constFp(vt, scale)), e.elem(to, i));
  });
  e.loop(e.cst(0), e.cst(p.dv), p.lanes, [&](Value i) {
    e.store(e.constFp(vt, 0), elem(p.output, e.add(e.mul(row, p.dv), i)));
  });
  e.store(query.limit, elem(p.limit, row, 8));
  if (p.alibi) {
    Value head = e.rem(query.head, op.getAlibi()->size());
    e.store(query.position, elem(p.position, row, 8));
    e.store(e.load(e.f32(), e.elem(slopes, head)), elem(p.slope, row));
  }
  for (auto [i, maskRow] : llvm::enumerate(query.maskRows))
    e.store(maskRow, elem(p.maskRows + int64_t(i) * p.rows * 8, row, 8));
}

Value Attention::firstChunk(Value limit) {
  if (!window)
    return e.cst(0);
  return e.div(e.max(e.sub(limit, *window), e.cst(0)), p.chunk);
}

Value Attention::seen(Value row, Value keyBase) {
  Value keys = e.sub(word(p.limit, row), keyBase);
  return e.min(e.max(keys, e.cst(0)), e.cst(p.chunk));
}

/// body(row, R) for tiles of at most `most` rows that cover rows [from, to).
static void coverRows(Emitter &e, Value from, Value to, int64_t most,
                      function_ref<void(Value, int64_t)> body) {
  // 24 12 6 3 1 or 8 4 2 1
  for (int64_t r = most; r >= 1; r /= 2) {
    Value whole = e.mul(e.div(e.sub(to, from), r), r);
    Value next = e.add(from, whole);
    e.loop(from, next, r, [&](Value row) { body(row, r); });
    from = next;
  }
}

// Page by page, so that it stays in L1 while the rows pass it; of the keys that
// a tile sees, whole vectors.
void Attention::scoresOf(const BlockRange &b) {
  Value to = e.add(b.row0, b.rows);
  AttentionTile main = attentionTiles(p, p.page)[0];
  const int64_t width = main.vectors * p.lanes;
  Value last = seen(e.sub(to, 1), b.keyBase);
  e.loop(b.from, last, p.page, [&](Value key) {
    Value page = e.load(e.ptr(), elem(p.keyPages, e.div(key, p.page), 8));
    coverRows(e, b.row0, to, main.rows, [&](Value row, int64_t rows) {
      Value end = e.sub(seen(e.add(row, rows - 1), b.keyBase), key);
      end = e.min(e.max(end, e.cst(0)), e.cst(p.page));
      Value q = elem(p.q, e.mul(row, p.qPitch));
      Value s = elem(p.scores,
                     e.add(e.mul(e.sub(row, b.row0), p.sPitch), key));
      auto run = [&](int64_t vectors, Value column) {
        callScores(e, p, {rows, vectors}, q, e.elem(page, column),
                   e.elem(s, column), /*stream=*/rows < main.rows);
      };
      Value whole = e.mul(e.div(end, width), width);
      e.loop(e.cst(0), whole, width,
             [&](Value column) { run(main.vectors, column); });
      Value rest = e.ceilDiv(e.sub(end, whole), p.lanes), column = whole;
      for (int64_t v = main.vectors; v >= 1; v /= 2) {
        Value many = e.lt(e.cst(v - 1), rest);
        e.ifThen(many, [&] { run(v, column); });
        Value done = e.select(many, e.cst(v), e.cst(0));
        rest = e.sub(rest, done);
        column = e.add(column, e.mul(done, p.lanes));
      }
    });
  });
}

void Attention::valuesOf(const BlockRange &b) {
  int64_t column = 0;
  for (AttentionTile tile : attentionTiles(p, p.dv)) {
    Value pages = elem(p.valuePages, e.div(b.from, p.page), 8);
    coverRows(e, b.row0, e.add(b.row0, b.rows), tile.rows,
              [&](Value row, int64_t rows) {
                Value inBlock = e.sub(row, b.row0);
                Value keys = e.sub(seen(e.add(row, rows - 1), b.keyBase), b.from);
                Value s = elem(p.scores, e.add(e.mul(inBlock, p.sPitch), b.from));
                Value out = e.at(elem(p.part, e.mul(inBlock, p.dv)), column * 4);
                callValues(e, p, {rows, tile.vectors}, s, pages, column, keys,
                           out, /*stream=*/rows < tile.rows);
              });
    column += tile.vectors * p.lanes;
  }
}

// O' = O a + o b
void Attention::merge(const BlockRange &b) {
  e.loop(e.cst(0), b.rows, 1, [&](Value row) {
    auto factor = [&](int64_t at) {
      return e.splat(e.load(e.f32(), elem(at, row)), p.lanes);
    };
    Value before = factor(p.oldFactor), now = factor(p.newFactor);
    Value from = elem(p.part, e.mul(row, p.dv)),
          to = elem(p.output, e.mul(e.add(b.row0, row), p.dv));
    e.loop(e.cst(0), e.cst(p.dv), p.lanes, [&](Value i) {
      Type vt = e.vec(e.f32());
      Value o = e.load(vt, e.elem(from, i)), at = e.elem(to, i);
      e.store(e.fma(o, now, e.fmul(e.load(vt, at), before)), at);
    });
  });
}

void Attention::chunk(Value rows, Value keyBase) {
  e.loop(e.cst(0), rows, p.block, [&](Value row0) {
    BlockRange b{row0, e.min(e.cst(p.block), e.sub(rows, row0)), keyBase,
                 e.cst(0)};
    Value first = e.sub(word(p.limit, row0), keyBase),
          last = seen(e.sub(e.add(row0, b.rows), 1), keyBase);
    Value some = e.lt(e.cst(0), last), whole = e.le(e.cst(p.chunk), first);
    if (window) {
      auto hidden = [&](Value row) {
        return e.max(e.sub(word(p.limit, row), e.add(keyBase, *window)),
                     e.cst(0));
      };
      Value before = hidden(row0);
      some = e.both(some, e.lt(before, last));
      b.from = e.mul(e.div(before, p.page), p.page);
      Value all = e.eq(hidden(e.sub(e.add(row0, b.rows), 1)), e.cst(0));
      whole = e.both(whole, all);
    }
    e.ifThen(some, [&] {
      scoresOf(b);
      softmax(b, whole);
      valuesOf(b);
      merge(b);
    });
  });
}

void Attention::finish(Value row, Value out) {
  Value l = e.load(e.f32(), elem(p.sum, row)), zero = e.constFp(e.f32(), 0);
  Value empty =
      arith::CmpFOp::create(e.b, e.loc, arith::CmpFPredicate::OEQ, l, zero);
  Value inverse = e.select(empty, zero, e.fdiv(e.constFp(e.f32(), 1), l));
  inverse = e.splat(inverse, p.lanes);
  Value from = elem(p.output, e.mul(row, p.dv));
  forColumns(e, e.cst(p.d), [&](Value i, Value mask) {
    Value o = e.load(e.vec(e.f32()), e.elem(from, i));
    storeVector(e, e.fmul(o, inverse), e.elem(out, i), mask);
  });
}

int64_t gptc::cpu::attentionScratch(gpt::KernelOp kernel, const TargetDesc &t) {
  return AttentionPlan(kernel, t).bytes;
}
